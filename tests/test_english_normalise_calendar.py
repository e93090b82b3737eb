"""Written English to spoken English: dates, years, times, ranges and telephone numbers."""

import pytest

from ouzel.english.normalise import normalise


def cases(text):
    return [pytest.param(*line.rsplit(" -> ", 1), id=line.rsplit(" -> ", 1)[0]) for line in text.strip().splitlines()]


def listened(text):
    """The words in small letters, without marks: what a listener writes down."""
    return " ".join("".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split())


DATES = """
March 3rd, 1998 -> march third nineteen ninety eight
March 3 1998 -> march third nineteen ninety eight
3 March 1998 -> the third of march nineteen ninety eight
3rd March -> the third of march
the 3rd of March, 1998 -> the third of march nineteen ninety eight
The 4th of July -> the fourth of july
May 21 -> may twenty first
May 21-23 -> may twenty first to twenty third
Jan. 5, 2020 -> january fifth twenty twenty
SEPT 11 -> september eleventh
Sat, May 4 -> saturday may fourth
Tue, 5 Mar 2024 -> tuesday the fifth of march twenty twenty four
Dec. 24-26 -> december twenty fourth to twenty sixth
25 December -> the twenty fifth of december
May 2024 -> may twenty twenty four
December, 2019 -> december twenty nineteen
2024-05-21 -> may twenty first twenty twenty four
2024/05/21 -> may twenty first twenty twenty four
5/21/2024 -> may twenty first twenty twenty four
21/5/2024 -> may twenty first twenty twenty four
21.05.2024 -> may twenty first twenty twenty four
5/21/24 -> may twenty first twenty twenty four
on 5/21 -> on may twenty first
by 1/2 -> by january second
2024-05-21T10:30 -> may twenty first twenty twenty four ten thirty
May I have 5 apples? -> may i have five apples
In May 5 people came. -> in may five people came
march 12 miles -> march twelve miles
"""


@pytest.mark.parametrize(("text", "words"), cases(DATES))
def test_dates(text, words):
    assert listened(normalise(text).text) == words


YEARS = """
in 1998 -> in nineteen ninety eight
In 1066, William came. -> in ten sixty six william came
in 1905 -> in nineteen oh five
in 2005 -> in two thousand and five
in 1900 -> in nineteen hundred
in 2000 -> in two thousand
since 1987 -> since nineteen eighty seven
by 2030 -> by twenty thirty
(2019) -> twenty nineteen
mid-1987 -> mid nineteen eighty seven
pre-2000 -> pre two thousand
in 2000 steps -> in two thousand steps
by 1500 people -> by one thousand five hundred people
weighs 1998 grams -> weighs one thousand nine hundred and ninety eight grams
the 2008 crisis -> the two thousand and eight crisis
the 1998 World Cup -> the nineteen ninety eight world cup
2024 was good. -> twenty twenty four was good
2024's best -> twenty twenty four's best
1990-1995 -> nineteen ninety to nineteen ninety five
1990-95 -> nineteen ninety to ninety five
between 1914 and 1918 -> between nineteen fourteen and nineteen eighteen
from 1914 to 1918 -> from nineteen fourteen to nineteen eighteen
class of 1999 -> class of nineteen ninety nine
class of '98 -> class of ninety eight
500 BC -> five hundred b c
Summer 2024 -> summer twenty twenty four
Q3 2024 -> q three twenty twenty four
Paris, 2019. -> paris twenty nineteen
copyright 2023 -> copyright twenty twenty three
Expo 2020 -> expo twenty twenty
Windows 2000 -> windows two thousand
about 1500 -> about one thousand five hundred
1,998 -> one thousand nine hundred and ninety eight
the 1990s -> the nineteen nineties
the '90s and the 80's -> the nineties and the eighties
in her 30s -> in her thirties
30s -> thirty seconds
the 1800s -> the eighteen hundreds
the 2010s -> the twenty tens
1600 Pennsylvania Avenue -> sixteen hundred pennsylvania avenue
Flight 1549 -> flight fifteen forty nine
Room 204 -> room two oh four
the Boeing 747 -> the boeing seven forty seven
"""


@pytest.mark.parametrize(("text", "words"), cases(YEARS))
def test_years(text, words):
    assert listened(normalise(text).text) == words


TIMES = """
7:45 -> seven forty five
6:30 pm -> six thirty p m
6:30 p.m. today -> six thirty p m today
18:05 -> eighteen oh five
7:00 -> seven o'clock
7:00 pm -> seven p m
10 a.m. -> ten a m
10am -> ten a m
12:00 -> twelve o'clock
00:00 -> midnight
00:15 -> zero fifteen
14:00 -> fourteen hundred
at 10 a.m. He left. -> at ten a m he left
10 a.m. Monday -> ten a m monday
9-5pm -> nine to five p m
9am-5pm -> nine a m to five p m
9:00-17:00 -> nine o'clock to seventeen hundred
9–11 a.m. -> nine to eleven a m
7.30pm -> seven thirty p m
5 o'clock -> five o'clock
4:05:09 -> four oh five oh nine
1:45.32 -> one forty five point three two
16:9 -> sixteen to nine
3:1 -> three to one
John 3:16 -> john three sixteen
0600 hours -> oh six hundred hours
"""


@pytest.mark.parametrize(("text", "words"), cases(TIMES))
def test_times(text, words):
    assert listened(normalise(text).text) == words


RANGES_AND_TELEPHONES = """
3-5 -> three to five
3–5 days -> three to five days
pages 10-20 -> pages ten to twenty
5,000-10,000 -> five thousand to ten thousand
2.5-3.5 -> two point five to three point five
score 3-2 -> score three to two
555-0199 -> five five five zero one nine nine
(555) 123-4567 -> five five five one two three four five six seven
555-123-4567 -> five five five one two three four five six seven
1-800-555-0199 -> one eight zero zero five five five zero one nine nine
+44 20 7946 0958 -> plus four four two zero seven nine four six zero nine five eight
+1 (555) 123-4567 -> plus one five five five one two three four five six seven
+50 -> plus fifty
020 7946 0958 -> zero two zero seven nine four six zero nine five eight
Call 911 now -> call nine one one now
9-1-1 -> nine one one
PIN: 1234 -> pin one two three four
My code is 4821. -> my code is four eight two one
zip code 90210 -> zip code nine zero two one zero
CA 94105 -> c a nine four one zero five
ext. 123 -> extension one two three
4111 1111 1111 1111 -> four one one one one one one one one one one one one one one one
123-45-6789 -> one two three four five six seven eight nine
192.168.0.1 -> one hundred and ninety two dot one hundred and sixty eight dot zero dot one
version 1.2.3 -> version one point two point three
v2.5 -> version two point five
"""


@pytest.mark.parametrize(("text", "words"), cases(RANGES_AND_TELEPHONES))
def test_ranges_and_telephones(text, words):
    assert listened(normalise(text).text) == words
