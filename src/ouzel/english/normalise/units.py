"""Measures: 5 km, 20 kg, 18°C, 60 mph, 3 GB, 5'11", 10 m/s, 80 m²."""

from __future__ import annotations

import re

from .characters import MICRO, OHM
from .nouns import attributive
from .numbers import NUMBER
from .tables import table

# Symbols that are also words or initials count only right behind their figure (see _ATTACHED).
_UNITS = table(
    """
nm: nanometer | µm: micrometer | mm: millimeter | cm: centimeter | m: meter | km: kilometer | mi: mile | yd: yard | yds: yard
ft: foot | in: inch | ac: acre | ha: hectare | µg: microgram | mcg: microgram | mg: milligram | g: gram | kg: kilogram
kgs: kilogram | t: ton | lb: pound | lbs: pound | oz: ounce | fl oz: fluid ounce | ml: milliliter | mL: milliliter
cl: centiliter | dl: deciliter | l: liter | L: liter | gal: gallon | tsp: teaspoon | tbsp: tablespoon | pt: pint | qt: quart
ns: nanosecond | µs: microsecond | ms: millisecond | s: second | sec: second | secs: second | min: minute | mins: minute
h: hour | hr: hour | hrs: hour | wk: week | wks: week | mo: month | mos: month | yr: year | yrs: year | Hz: hertz
kHz: kilohertz | MHz: megahertz | GHz: gigahertz | mW: milliwatt | W: watt | kW: kilowatt | MW: megawatt | GW: gigawatt
Wh: watt hour | kWh: kilowatt hour | MWh: megawatt hour | V: volt | mV: millivolt | kV: kilovolt | mA: milliamp
mAh: milliamp hour | Ω: ohm | kΩ: kiloohm | kJ: kilojoule | cal: calorie | kcal: kilocalorie | Pa: pascal | kPa: kilopascal
hPa: hectopascal | MPa: megapascal | bar: bar | Nm: newton meter | dB: decibel | lm: lumen | lx: lux | mol: mole | px: pixel
MP: megapixel | kb: kilobit | kB: kilobyte | KB: kilobyte | MB: megabyte | GB: gigabyte | TB: terabyte | PB: petabyte
MiB: mebibyte | GiB: gibibyte | Mb: megabit | Gb: gigabit | Mbit: megabit | Gbit: gigabit | °C: degree Celsius
°F: degree Fahrenheit | °: degree
""".replace("Ω", OHM).replace("µ", MICRO)
)
_FIXED = table(
    """
mph: miles per hour | kph: kilometers per hour | kmh: kilometers per hour | mpg: miles per gallon | rpm: R P M
bpm: beats per minute | fps: frames per second | psi: P S I | dpi: D P I | ppm: parts per million | hp: horsepower
kbps: kilobits per second | Mbps: megabits per second | Gbps: gigabits per second | sq ft: square feet | cu ft: cubic feet
sqft: square feet | bn: billion | mn: million | k: thousand
"""
)
_PLURALS = {"foot": "feet", "inch": "inches", "hertz": "hertz", "lux": "lux", "bar": "bar"}
_ATTACHED = frozenset(("in", "MP", "pt", "mo", "k"))
_DOTTED = frozenset("ft in lb lbs oz hr hrs min mins sec secs yd yds mi gal wk wks yr yrs mo mos tsp tbsp".split())
_PER = table(
    """
h: hour | hr: hour | s: second | sec: second | min: minute | d: day | day: day | week: week | month: month | mo: month
year: year | yr: year | hour: hour | minute: minute | second: second | night: night | person: person | m: meter
km: kilometer | l: liter | L: liter | dl: deciliter | dL: deciliter | ml: milliliter | mL: milliliter | kg: kilogram | g: gram
lb: pound | gal: gallon | mol: mole | ha: hectare
"""
)

_AMOUNT = rf"(?<![\w.,/])(?:\d++\s)?\d++/\d++(?!/)|(?<![\w.,]){NUMBER}"
_SYMBOL = "|".join(re.escape(symbol).replace(r"\ ", r"\.?\s") for symbol in sorted({**_UNITS, **_FIXED}, key=len, reverse=True))
_PER_SYMBOL = "|".join(sorted(_PER, key=len, reverse=True))
_UNIT = re.compile(
    rf"(?P<amount>{_AMOUNT})(?P<gap>\s?|-)(?P<symbol>{_SYMBOL})(?P<power>\^?[23](?!\d))?(?:/(?P<per>{_PER_SYMBOL})(?P<power2>\^?2)?)?"
    r"(?![A-Za-z0-9])(?!/[A-Za-z])(?P<dot>\.(?=\s+[a-z(]))?"
)
_HEIGHT = re.compile(r"(?<![\w.,'])(\d{1,2})\s?(?:'|ft\.?)\s?(\d{1,2})\s?(?:\"|''|in\b\.?(?!\w))?(?![\w'])")
_INCHES = re.compile(rf"(?P<figure>(?<![\w.,]){NUMBER})(?:\s?''|\s?\")|\"")
_FEET = re.compile(r"(?<![\w.,])(\d+)'(?=\s(?:tall|wide|long|high|deep|x|by)\b)")
_PER_WORD = re.compile(rf"(?<=\d)\s?/\s?(?P<per>{'|'.join(p for p in _PER if len(p) > 2)})\b")
_DEGREE_GAP = re.compile(r"(?<=\d)\s?°\s?(?=[CF]\b)")
_DIMENSIONS = re.compile(r"(?<=\d)(?<!\b0)\s?[xX]\s?(?=\d)")
_MILLIONS = re.compile(r"(?<=\d)(?:(M)|(?<=\.\d)B|(?<=\.\d\d)B)(?![A-Za-z0-9])")
_TIMES = re.compile(r"(?<=\d)[xX](?![A-Za-z0-9])")


def speak_units(text: str) -> str:
    """Symbols after figures become words; the figures stay as they are."""
    text = _HEIGHT.sub(_height, text)
    text = _inches(text)
    text = _FEET.sub(r"\1 feet", text)
    text = _DEGREE_GAP.sub("°", text)
    text = _TIMES.sub(" times", _DIMENSIONS.sub(" by ", text))
    text = _MILLIONS.sub(lambda m: " million" if m[1] else " billion", _UNIT.sub(_unit, text))
    return _PER_WORD.sub(lambda m: f" per {_PER[m['per']]}", text)


def _unit(found: re.Match[str]) -> str:
    amount, symbol = found["amount"], re.sub(r"\.?\s", " ", found["symbol"])
    if symbol in _ATTACHED and found["gap"] == " ":
        return found.group()
    if found["dot"] and symbol not in _DOTTED:
        return found.group()
    if symbol in _FIXED:
        words = _FIXED[symbol]
    else:
        single = amount == "1" or ("/" in amount and " " not in amount) or found["gap"] == "-" or attributive(found)
        words = _UNITS[symbol]
        first, _, rest = words.partition(" ")
        if not single:
            words = plural(words) if first != "degree" else f"degrees {rest}".rstrip()
        power = (found["power"] or "").lstrip("^")
        if power:
            words = f"{'square' if power == '2' else 'cubic'} {words}"
    if found["per"]:
        words += f" per {_PER[found['per']]}{' squared' if found['power2'] else ''}"
    return f"{amount} {words}"


def plural(noun: str) -> str:
    return _PLURALS.get(noun) or f"{noun}s"


def _height(found: re.Match[str]) -> str:
    """5'11" is five foot eleven; 6' 2 apples is not a height, so minutes of arc and stray quotes are left alone."""
    return f"{found[1]} foot {found[2]}" if int(found[2]) < 12 else found.group()


def _inches(text: str) -> str:
    """A quotation mark after a figure is a sign of inches, unless it closes a quotation."""
    is_open = False

    def replace(found: re.Match[str]) -> str:
        nonlocal is_open
        figure = found["figure"]
        if figure is None or (is_open and found.group().endswith('"')):
            is_open = not is_open
            return found.group()
        return f"{figure} {'inch' if figure == '1' or attributive(found) else 'inches'}"

    return _INCHES.sub(replace, text)
