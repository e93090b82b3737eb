"""English text to phones: no network, no data but what the package ships."""

from .phones import BREAK, MARKS, PHONES, SILENCE, SYMBOLS
from .spoken import Pronounce, spoken_form

__all__ = ["BREAK", "MARKS", "PHONES", "SILENCE", "SYMBOLS", "Pronounce", "spoken_form"]
