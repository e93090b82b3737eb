"""Words whose final dot does not end a sentence. Lower case, without that dot; inner dots stay.

A missed boundary only makes one segment longer; a false one breaks "Dr. | Sharma" audibly. So the lists lean to "no boundary".
"""

from __future__ import annotations

_ENGLISH = """
    mr mrs ms mx dr prof rev hon fr gen col maj capt cmdr lt sgt cpl pvt gov sen rep pres supt messrs mmes esq jr sr st mt ft ave
    blvd rd hwy dept univ assn bros inc ltd co corp vs viz cf al approx ca resp incl excl vol vols ch chap eq eqs ed eds trans
    misc ph.d b.sc m.sc ll.b ll.m ed.d psy.d d.phil
"""
_GERMAN = "nr hr str bzw evtl ggf vgl inkl exkl zzgl mio mrd abs bd hrsg sog u.ä dipl ing geb verh gest tel"
_FRENCH = "mme mlle mm pr env av boul p.ex éd réf"
_SPANISH_PORTUGUESE = "sra srta srs sres dra dña ud uds vd vds pág págs núm aprox ee.uu avda exmo exma eng arq"
_ITALIAN = "sig sig.ra sigg dott dott.ssa avv pag pagg"
_RUSSIAN = "ул стр см напр тыс млн млрд руб коп гр проф акад т.е т.к"

# Ordinary words too ("No.", "the sun."): an abbreviation only when a digit follows.
_BEFORE_NUMBER = """
    no nos nº fig figs art sec op est min max pp
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
"""
# Close a list, often a sentence as well: they end it when a capital letter follows.
_BEFORE_CAPITAL = "etc usw ecc т.д т.п др"
_GERMAN_MONTHS = "januar jänner februar märz april mai juni juli august september oktober november dezember"

ALWAYS = frozenset(" ".join((_ENGLISH, _GERMAN, _FRENCH, _SPANISH_PORTUGUESE, _ITALIAN, _RUSSIAN)).split())
BEFORE_NUMBER = frozenset(_BEFORE_NUMBER.split())
BEFORE_CAPITAL = frozenset(_BEFORE_CAPITAL.split())
# German writes ordinals with a dot: "am 3. Oktober".
GERMAN_MONTHS = frozenset(_GERMAN_MONTHS.split())
