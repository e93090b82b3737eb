"""Written English to spoken English: numbers, fractions, money, units and names with figures."""

import pytest

from ouzel.english.normalise import normalise


def cases(text):
    return [pytest.param(*line.rsplit(" -> ", 1), id=line.rsplit(" -> ", 1)[0]) for line in text.strip().splitlines()]


def listened(text):
    """The words in small letters, without marks: what a listener writes down."""
    return " ".join("".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split())


NUMBERS = """
0 -> zero
1,000,000 -> one million
1000000 -> one million
1 000 000 -> one million
1,00,000 -> one hundred thousand
999999999999999 -> nine nine nine nine nine nine nine nine nine nine nine nine nine nine nine
123456789012345678901 -> one two three four five six seven eight nine zero one two three four five six seven eight nine zero one
007 -> zero zero seven
-5 -> minus five
−5 or ±5 -> minus five or plus or minus five
2.5 -> two point five
0.5 -> zero point five
.5 -> point five
3.14159 -> three point one four one five nine
0.000001 -> zero point zero zero zero zero zero one
1,234.50 -> one thousand two hundred and thirty four point five zero
1,2,3 -> one two three
5550199123 -> five five five zero one nine nine one two three
1500 people came -> one thousand five hundred people came
the population was 8,336,817 -> the population was eight million three hundred and thirty six thousand eight hundred and seventeen
3 0 9 4 -> three zero nine four
1e6 or 1.5e-9 -> one times ten to the power of six or one point five times ten to the power of minus nine
2^10 -> two to the power of ten
10⁸ -> ten to the power of eight
10⁻³ -> ten to the power of minus three
x² -> x squared
3² + 4² = 5² -> three squared plus four squared equals five squared
1+1=2 -> one plus one equals two
10 - 3 = 7 -> ten minus three equals seven
5 − 3 -> five minus three
3 * 4 -> three times four
2 × 3 = 6 -> two times three equals six
6 / 2 = 3 -> six divided by two equals three
~50 people -> about fifty people
<5 items -> less than five items
5+ -> five plus
#1 -> number one
No. 5 -> number five
№ 5 -> number five
p. 12, pp. 10-12 -> page twelve pages ten to twelve
vol. 2, no. 3 -> volume two number three
Fig. 3 -> figure three
"""


@pytest.mark.parametrize(("text", "words"), cases(NUMBERS))
def test_numbers(text, words):
    assert listened(normalise(text).text) == words


ORDINALS_AND_FRACTIONS = """
1st 2nd 3rd 21st 112th -> first second third twenty first one hundred and twelfth
1,000th -> one thousandth
the 21st century -> the twenty first century
20th-century art -> twentieth century art
1/2 -> one half
½ cup -> one half cup
2½ cups -> two and a half cups
1 1/2 cups -> one and a half cups
3/4 -> three quarters
5/8 -> five eighths
1/3 -> one third
2/3 of it -> two thirds of it
33 1/3 -> thirty three and a third
5/4 -> five quarters
7/10 -> seven out of ten
9.5/10 -> nine point five out of ten
1/1000 -> one over one thousand
120/80 -> one hundred and twenty over eighty
50/50 -> fifty fifty
24/7 -> twenty four seven
9/11 -> nine eleven
1/2 kg -> one half kilogram
"""


@pytest.mark.parametrize(("text", "words"), cases(ORDINALS_AND_FRACTIONS))
def test_ordinals_and_fractions(text, words):
    assert listened(normalise(text).text) == words


MONEY = """
$1 -> one dollar
$19.50 -> nineteen dollars and fifty cents
$0.01 -> one cent
$0.99 -> ninety nine cents
$10.00 -> ten dollars
$1,200.50 -> one thousand two hundred dollars and fifty cents
-$5 -> minus five dollars
$3.5 -> three dollars and fifty cents
$3.5 million -> three point five million dollars
$5k -> five thousand dollars
$2bn -> two billion dollars
$100K -> one hundred thousand dollars
£1m -> one million pounds
€1.5bn -> one point five billion euros
$5-10 -> five to ten dollars
$5-$10 -> five to ten dollars
$5/month -> five dollars per month
$1.99/lb -> one dollar and ninety nine cents per pound
US$5 -> five u s dollars
A$20 -> twenty australian dollars
€5, 5 € and 5€ -> five euros five euros and five euros
19,50 € -> nineteen euros and fifty cents
£3.20 -> three pounds and twenty pence
£0.50 -> fifty pence
£1.01 -> one pound and one penny
¥500 -> five hundred yen
₹200 -> two hundred rupees
₿2 -> two bitcoins
50¢ -> fifty cents
50p -> fifty pence
20 EUR -> twenty euros
USD 100 -> one hundred u s dollars
a $20 bill -> a twenty dollar bill
a $5 million house -> a five million dollar house
$1.234 -> one point two three four dollars
"""


@pytest.mark.parametrize(("text", "words"), cases(MONEY))
def test_money(text, words):
    assert listened(normalise(text).text) == words


UNITS = """
5 km -> five kilometers
1 km -> one kilometer
1.5 km -> one point five kilometers
a 5 km run -> a five kilometer run
5-km run -> five kilometer run
5-10 km -> five to ten kilometers
20 kg -> twenty kilograms
250g -> two hundred and fifty grams
18°C -> eighteen degrees celsius
-5°C -> minus five degrees celsius
18° C -> eighteen degrees celsius
18 °F -> eighteen degrees fahrenheit
18° -> eighteen degrees
20-25°C -> twenty to twenty five degrees celsius
a 45° angle -> a forty five degree angle
60 mph -> sixty miles per hour
50 km/h -> fifty kilometers per hour
10 m/s -> ten meters per second
9.8 m/s² -> nine point eight meters per second squared
80 m² -> eighty square meters
80 m2 -> eighty square meters
5 m³ -> five cubic meters
3 GB -> three gigabytes
1.5MB -> one point five megabytes
100 Mbps -> one hundred megabits per second
5'11" -> five foot eleven
5'11 -> five foot eleven
5 ft 11 in -> five foot eleven
6' tall -> six feet tall
12" pizza -> twelve inches pizza
He said "I am 12" and left -> he said i am twelve and left
3 1/4" pipe -> three and a quarter inches pipe
5 ft. tall -> five feet tall
It is 5 ft. -> it is five feet
2 hrs 30 min -> two hours thirty minutes
5 µm -> five micrometers
100 Ω -> one hundred ohms
230V -> two hundred and thirty volts
10k followers -> ten thousand followers
5M users -> five million users
2.5M -> two point five million
10x -> ten times
3x4 -> three by four
1920x1080 -> one thousand nine hundred and twenty by one thousand and eighty
75% -> seventy five percent
2.5 % -> two point five percent
5-10% -> five to ten percent
5 in 10 -> five in ten
1 in 3 -> one in three
5 fl oz -> five fluid ounces
30 sq ft -> thirty square feet
3/day -> three per day
2 tbsp -> two tablespoons
"""


@pytest.mark.parametrize(("text", "words"), cases(UNITS))
def test_units(text, words):
    assert listened(normalise(text).text) == words


MIXED = """
Use A4 -> use a four
A4 paper -> a' four paper
B2B -> b two b
covid19 -> covid nineteen
COVID-19 -> covid nineteen
iPhone15 -> iphone fifteen
MP3 -> m p three
H2O -> h two o
CO₂ -> c o two
H₂SO₄ -> h two s o four
F-16 -> f sixteen
A320 -> a' three twenty
4K -> four k
5G -> five g
3D -> three d
GPT-4 -> g p t four
x86 -> x eighty six
i7 -> i seven
PM2.5 -> p m two point five
1080p -> ten eighty p
mp3 player -> m p three player
U2 -> u two
G20 -> g twenty
Catch-22 -> catch twenty two
a3f5c9d2e1b4 -> a' three f five c nine d two e one b four
mp3.com -> m p three dot com
https://x.com/a1?b=2 -> x dot com slash a one question mark b equals two
file2.txt -> file two dot t x t
me99@x.io -> me ninety nine at x dot i o
3.5mm jack -> three point five millimeters jack
a 2.5M-user site -> a two point five million user site
"""


@pytest.mark.parametrize(("text", "words"), cases(MIXED))
def test_mixed(text, words):
    assert listened(normalise(text).text) == words
