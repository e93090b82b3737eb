"""Written English to speakable English: figures, money, dates, times, units, abbreviations, addresses, symbols and capitals."""

from .spoken import Spoken, normalise

__all__ = ["Spoken", "normalise"]
