"""The report as Markdown: the figures first, then every sentence with what was heard, so that anyone can listen and count."""

from __future__ import annotations

from pathlib import Path

from .findings import Findings, of, percent, table
from .gates import gates
from .listening import Heard
from .sentences import SETS, SHORT
from .tally import Margin, Rate, astray, likeness, margin, mean_mos, mean_pitch, rate, repeated, rtf, skipped

INTRODUCTION = """\
# How the embedded voice sounds, in figures

Made by `make voice-report` of the bundle `{name}` (checksum `{key}`), every request with `{options}`. The sentences are in
`training/voice/sentences`; none of the three sets was ever trained or tuned on. The listener is Whisper tiny.en (int8), each
utterance on its own; DNSMOS is the network for ITU-T P.835; the speaker encoder is Resemblyzer's. The teacher says the same
phones. Ranges behind word error rates hold 95 % of a bootstrap over sentences. CPU times were taken while the machine was busy
with other work.
"""
AGREEMENT = """
WER and DNSMOS over the three sets. Agreement is teacher-forced: each bundle is given what the first of the list said and asked
for its likeliest codes of the next frame.
"""


def page(found: Findings) -> str:
    pieces = [
        INTRODUCTION.format(name=found.name, key=found.key, options=dict(found.options)),
        "## Gates\n",
        gates(found),
        "## Word errors\n",
        errors(found),
        "## Sound, speakers, pitch\n",
        sound(found),
        "## Cost\n",
        cost(found),
    ]
    if found.compared:
        pieces += ["## Other weights of the same voice\n", compared(found)]
    if found.samples:
        listing = "".join(f"- [{name}](voice/{name}): {text}\n" for name, text in found.samples.items())
        pieces += ["## Samples\n", listing]
    pieces += ["## Every sentence\n", transcripts(found)]
    return "\n".join(pieces)


def write(found: Findings, docs: Path) -> Path:
    path = docs / "voice-report.md"
    path.write_text(page(found), encoding="utf-8")
    return path


def errors(found: Findings) -> str:
    rows = []
    for name in (*SETS, SHORT, "all three sets"):
        sets = SETS if name == "all three sets" else (name,)
        for speaker in found.speakers:
            mine, theirs = of(found.heard, sets, speaker), of(found.teacher, sets, speaker)
            if mine:
                counts = [f"{sum(map(count, mine))} / {sum(map(count, theirs))}" for count in (skipped, repeated)]
                rows.append([name, speaker, _wer_cell(rate(mine)), _wer_cell(rate(theirs)), *counts])
    head = ["set", "speaker", "WER of the voice", "WER of the teacher", "skipped, voice / teacher", "repeated, voice / teacher"]
    return table(head, rows)


def _wer_cell(found: Rate) -> str:
    if not found.words:
        return ""
    return f"**{percent(found.rate)}** ({found.errors}/{found.words}; {100 * found.low:.1f} to {100 * found.high:.1f})"


def sound(found: Findings) -> str:
    rows = []
    for speaker in found.speakers:
        for who, heard in (("voice", found.heard), ("teacher", found.teacher)):
            mine = of(heard, SETS, speaker)
            if mine:
                marks, (hz, deviation, span) = mean_mos(mine), mean_pitch(mine)
                near = f"{likeness(mine, found.teacher):.2f}" if who == "voice" and of(found.teacher, SETS, speaker) else ""
                rows.append([speaker, who, *(f"{m:.2f}" for m in marks), f"{hz:.0f}", f"{deviation:.1f}", f"{span:.1f}", near])
    head = [
        "speaker",
        "who",
        "SIG",
        "BAK",
        "OVRL",
        "pitch, Hz",
        "deviation, semitones",
        "range, semitones",
        "cosine with the teacher",
    ]
    margins = [("voice", margin(of(found.heard, SETS))), ("teacher", margin(of(found.teacher, SETS)))]
    speakers = table(["who", "cosine, one speaker", "two speakers", "margin", "told apart"], map(_margin_row, margins))
    return f"{table(head, rows)}\n{speakers}"


def _margin_row(item: tuple[str, Margin]) -> list[str]:
    who, value = item
    return [who, f"{value.same:.2f}", f"{value.cross:.2f}", f"{value.margin:.2f}", percent(value.right)]


def cost(found: Findings) -> str:
    rows = [["RTF: CPU seconds of the process for a second of audio", f"{rtf(found.heard):.3f}"]]
    if found.first:
        first = found.first
        rows += [
            ["first audio, warm: CPU, wall", f"{first.warm_cpu * 1000:.0f} ms, {first.warm_wall * 1000:.0f} ms"],
            ["first audio after process start: CPU, wall", f"{first.cold_cpu:.2f} s, {first.cold_wall:.2f} s"],
            ["the same without the warm-up of `load`", f"{first.unwarmed_cpu:.2f} s, {first.unwarmed_wall:.2f} s"],
        ]
    rows += [[f"size of {part}", f"{size / 1e6:.2f} MB"] for part, size in found.parts.items()]
    rows.append(["size of the whole bundle", f"{found.size / 1e6:.2f} MB"])
    return table(["", "one thread a stage"], rows)


def compared(found: Findings) -> str:
    wers = [f"WER, {speaker}" for speaker in found.speakers]
    rows = []
    for other in found.compared:
        heard, a = of(other.heard, SETS), other.agreement
        rates = [percent(rate(of(heard, SETS, speaker)).rate) for speaker in found.speakers]
        shares = [percent(a.first), percent(a.all), percent(a.each)] if a else ["", "", ""]
        rows.append([other.name, f"{other.size / 1e6:.1f}", *rates, f"{mean_mos(heard)[2]:.2f}", *shares, f"{rtf(heard):.3f}"])
    return table(["bundle", "MB", *wers, "DNSMOS", "same codebook 0", "same frame", "same code", "RTF"], rows) + AGREEMENT


def transcripts(found: Findings) -> str:
    theirs = {(h.set, h.text, h.speaker): h for h in found.teacher}
    head = ["to be spoken", "heard", "errors", "teacher, where it differs", "its errors"]
    pieces = []
    for name in (*SETS, SHORT):
        for speaker in found.speakers:
            rows = []
            for h in of(found.heard, name, speaker):
                teacher = theirs.get((h.set, h.text, speaker))
                differs = [teacher.heard, str(teacher.score.errors)] if teacher and teacher.score.errors else ["", ""]
                rows.append([h.text, h.heard or "(nothing)", _faults(h), *differs])
            if rows:
                pieces.append(f"### {name}, {speaker}\n\n{table(head, rows)}")
    return "\n".join(pieces)


def _faults(heard: Heard) -> str:
    """ "3: brown/crown, -fox, +the; too long": nothing for a sentence that was heard right."""
    signs = {"substitute": "{0}/{1}", "delete": "-{0}", "insert": "+{1}"}
    ops = ", ".join(signs[kind].format(said, got) for kind, said, got in heard.score.ops)
    told = f"{heard.score.errors}: {ops}" if ops else ""
    return "; ".join(part for part in (told, astray(heard)) if part)
