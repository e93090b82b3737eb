"""strip"""


def strip_markup(text: str) -> str:
    """First version: leaves the text as it is."""
    return text
