"""The greedy parity cases, shared by both oracles and by the tests that read their goldens."""

from __future__ import annotations

from dataclasses import dataclass

FRAMES = 121  # ids sampled at most: both oracles then return 120 frames (contract 5.1)


@dataclass(frozen=True)
class Case:
    """One greedy utterance. `penalty` is the repetition penalty; `icl` gives reference codes (seeded) with `ref_text`."""

    name: str
    task: str  # custom_voice | base | voice_design: also the checkpoint's type
    text: str
    language: str = "Auto"
    voice: str | None = None
    instruct: str | None = None
    layout: bool | None = None  # non_streaming_mode; None = the task's default
    penalty: float = 1.0
    icl: bool = False
    ref_text: str | None = None


CASES = (
    Case("cv_english", "custom_voice", "Hello world, this is a parity test.", "English", "Vivian"),
    Case("cv_auto", "custom_voice", "The quick brown fox jumps over the lazy dog at 9:30.", "Auto", "ryan"),
    Case("cv_chinese", "custom_voice", "你好，世界。今天天气很好。", "Chinese", "serena"),
    Case("cv_dialect", "custom_voice", "A voice with a dialect of its own.", "Auto", "eric"),
    Case(
        "cv_streaming", "custom_voice", "Text that is fed one row a frame while speech goes on.", "German", "aiden", layout=False
    ),
    Case("cv_penalty", "custom_voice", "Penalties change what is likely.", "French", "sohee", penalty=1.05),
    # The third id would be 1 if it were not penalised from the start, so this case tells the two penalty rules apart.
    Case("cv_seen_one", "custom_voice", "Dark tree rain.", "English", "vivian", penalty=1.05),
    Case("base_english", "base", "Speak with the voice of a vector.", "English"),
    Case("base_auto", "base", "Nothing is said about the language here.", "Auto"),
    Case("base_full_text", "base", "All of the text goes in first.", "Italian", layout=True),
    Case("base_russian", "base", "Привет, это проверка.", "Russian"),
    Case("base_icl", "base", "Now in the style of the reference.", "English", icl=True, ref_text="This was said before."),
    Case("vd_plain", "voice_design", "A voice made to order.", "English", instruct="A calm, low voice."),
    Case(
        "vd_long",
        "voice_design",
        "One, two, three, four, five, six.",
        "Auto",
        instruct="Excited; speaks fast and high, out of breath.",
    ),
    Case("vd_japanese", "voice_design", "こんにちは、元気ですか。", "Japanese", instruct="やさしい女性の声"),
    Case("vd_streaming", "voice_design", "Row by row, word by word.", "Spanish", instruct="Old sailor.", layout=False),
)


def vector(hidden: int):
    """The speaker vector of the Base cases, float32 (hidden,), of values that bfloat16 holds exactly: the server rounds to it."""
    import numpy as np

    values = (np.random.Generator(np.random.Philox(77)).standard_normal(hidden) * 0.3).astype(np.float32)
    return (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def reference_codes(frames: int = 12):
    """Reference codec frames of the ICL cases, int64 (frames, 16), ids 1..2047."""
    import numpy as np

    return np.random.Generator(np.random.Philox(78)).integers(1, 2048, (frames, 16))


# Whole codec frames; parts of a frame and of a row of its transformer; and more than the ten seconds of the config's window.
RECORDINGS = {"whole": 48_000, "odd": 79_201, "short": 24_500, "long": 290_003}


def recording(name: str):
    """A recording of the reference cases, int16 (n,) at 24 kHz: a gliding voice with pauses, and noise in it."""
    import numpy as np

    count = RECORDINGS[name]
    time = np.arange(count) / 24_000
    pitch = 110 + 60 * np.sin(2 * np.pi * 0.7 * time + count)
    phase = 2 * np.pi * np.cumsum(pitch) / 24_000
    voice = sum(np.sin(k * phase) / k for k in range(1, 30))
    loudness = np.clip(np.sin(2 * np.pi * 1.3 * time) + 0.4, 0, 1)
    noise = np.random.Generator(np.random.Philox(count)).uniform(-1, 1, count)
    return np.round(6000 * loudness * voice + 500 * noise).astype(np.int16)
