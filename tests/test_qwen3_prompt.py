"""Prompt rows, read back from tables whose rows spell out their ids (contract 4.2 to 4.6)."""

from pathlib import Path

import numpy as np
import pytest

from ouzel.errors import UsageError
from ouzel.models.qwen3_tts.budget import frame_budget
from ouzel.models.qwen3_tts.config import ModelConfig
from ouzel.models.qwen3_tts.prompt import PromptBuilder, Reference, Speech
from ouzel.models.qwen3_tts.random_config import model_config
from ouzel.models.qwen3_tts.tables import Tables
from ouzel.models.qwen3_tts.tokenizer import read_tokenizer

TOKENIZER = read_tokenizer(Path(__file__).parent / "golden" / "qwen2_bpe")
START, END, PAD, BOS, EOS = 151644, 151645, 151671, 151672, 151673
IDS = {"im_start_token_id": START, "im_end_token_id": END, "assistant_token_id": 77091}
IDS |= {"tts_pad_token_id": PAD, "tts_bos_token_id": BOS, "tts_eos_token_id": EOS}
C_PAD, C_BOS, THINK, NOTHINK, THINK_BOS, THINK_EOS = 2148, 2149, 2154, 2155, 2156, 2157
HIDDEN, GROUPS = 128, 16
VECTOR = np.full(HIDDEN, 0.25, dtype=np.float32)


class Spelled:
    """Text rows without 150 000 of them: row i is (i, 0, 0, ...)."""

    def __getitem__(self, ids):
        rows = np.zeros((len(ids), HIDDEN), dtype=np.float32)
        rows[:, 0] = ids
        return rows


def spelled_tables():
    """Column 0 holds the text id, column 1 the codec id + 1, column q + 1 the code of codebook q + 1 (0 = none)."""
    codec, residual = np.zeros((3072, HIDDEN), np.float32), np.zeros((GROUPS - 1, 2048, HIDDEN), np.float32)
    codec[:, 1] = np.arange(3072) + 1
    for q in range(GROUPS - 1):
        residual[q, :, q + 2] = np.arange(2048) + 1
    return Tables(Spelled(), codec, residual)


def builder(kind="custom_voice", **options):
    config = ModelConfig.parse(model_config("tiny", kind, IDS, 151936))
    return PromptBuilder(config, spelled_tables(), TOKENIZER, **options)


def read(rows):
    """[(text id, codec id)], None where a row has no such part; a speaker vector reads as "speaker"."""
    out = []
    for row in rows:
        if row[2] == 0.25:
            out.append((int(row[0]) or None, "speaker"))
        else:
            out.append((int(row[0]) or None, int(row[1]) - 1 if row[1] else None))
    return out


TEXT = TOKENIZER.encode("Hello world.")
ROLE = [(START, None), (77091, None), (198, None)]
ENGLISH = [(PAD, THINK), (PAD, THINK_BOS), (PAD, 2050), (PAD, THINK_EOS)]
ANY = [(PAD, NOTHINK), (PAD, THINK_BOS), (PAD, THINK_EOS)]


def speech(**changes):
    return Speech(**{"text": "Hello world.", "language": "english", "voice": "ryan", **changes})


def test_whole_text_in_the_prefill():
    rows = builder().build(speech())
    body = [(i, C_PAD) for i in [*TEXT, EOS]] + [(PAD, C_BOS)]
    assert read(rows.prefill) == [*ROLE, *ENGLISH, (PAD, 3061), (BOS, C_PAD), *body]
    assert rows.trailing.shape == (0, HIDDEN)
    assert read([rows.pad]) == [(PAD, None)]
    assert rows.text_tokens == len(TEXT)
    assert len(rows.prefill) == 3 + 6 + (len(TEXT) + 1) + 1  # contract 4.7
    assert {rows.prefill.dtype, rows.trailing.dtype, rows.pad.dtype} == {np.dtype(np.float32)}


def test_text_one_id_a_frame():
    rows = builder().build(speech(non_streaming=False))
    assert read(rows.prefill) == [*ROLE, *ENGLISH, (PAD, 3061), (BOS, C_PAD), (TEXT[0], C_BOS)]
    assert read(rows.trailing) == [(i, None) for i in [*TEXT[1:], EOS]]


def test_automatic_language():
    rows = builder().build(speech(language="auto", non_streaming=False))
    assert read(rows.prefill) == [*ROLE, *ANY, (PAD, 3061), (BOS, C_PAD), (TEXT[0], C_BOS)]


def test_instructions_come_first_and_voice_design_has_no_speaker():
    rows = builder("voice_design").build(speech(voice=None, language="auto", instructions="Say it happily.", non_streaming=False))
    spoken = TOKENIZER.encode("Say it happily.")
    before = [START, *TOKENIZER.encode("user\n"), *spoken, END, *TOKENIZER.encode("\n")]
    assert read(rows.prefill) == [*((i, None) for i in before), *ROLE, *ANY, (BOS, C_PAD), (TEXT[0], C_BOS)]


def test_the_speaker_vector_takes_the_voice_row():
    rows = builder("base").build(speech(voice=None, speaker=VECTOR, non_streaming=False))
    assert read(rows.prefill) == [*ROLE, *ENGLISH, (PAD, "speaker"), (BOS, C_PAD), (TEXT[0], C_BOS)]


REF = TOKENIZER.encode("This is it.")


def in_context(frames, *, non_streaming):
    codes = np.random.default_rng(1).integers(0, 2048, (frames, GROUPS))
    given = speech(voice=None, speaker=VECTOR, reference=Reference(codes, "This is it."), non_streaming=non_streaming)
    return codes, builder("base").build(given)


def test_reference_in_front_with_the_whole_text():
    codes, rows = in_context(5, non_streaming=True)
    spoken = [(i, C_PAD) for i in [*REF, *TEXT, EOS]]
    assert read(rows.prefill[9:]) == [*spoken, (PAD, C_BOS), *((PAD, int(c)) for c in codes[:, 0])]
    assert rows.trailing.shape == (0, HIDDEN)
    assert np.array_equal(rows.prefill[-5:, 1 : GROUPS + 1] - 1, codes)  # all codebooks are summed
    assert rows.text_tokens == len(TEXT)


@pytest.mark.parametrize("frames", [1, 5, 30])
def test_reference_beside_the_text(frames):
    codes, rows = in_context(frames, non_streaming=False)
    spoken = [*REF, *TEXT, EOS]
    codec = [C_BOS, *codes[:, 0].tolist()]
    beside = (spoken + [PAD] * len(codec))[: len(codec)]
    assert read(rows.prefill[9:]) == list(zip(beside, codec, strict=True))
    assert read(rows.trailing) == [(i, None) for i in spoken[len(codec) :]]


@pytest.mark.parametrize("language", ["auto", "english"])
@pytest.mark.parametrize("instructions", [None, "Calm."])
@pytest.mark.parametrize("frames", [0, 4])
@pytest.mark.parametrize("non_streaming", [True, False])
def test_prompt_length_is_that_of_the_contract(language, instructions, frames, non_streaming):
    """Contract 4.6, with A, R and I as lengths of the filled-in templates."""
    a, r, i = len(TEXT) + 8, len(REF) + 5, len(TOKENIZER.encode("Calm.")) + 5 if instructions else 0
    reference = Reference(np.ones((frames, GROUPS), np.int64), "This is it.") if frames else None
    given = speech(voice=None, speaker=VECTOR, language=language, instructions=instructions, reference=reference)
    rows = builder("base").build(Speech(**{**{k: getattr(given, k) for k in Speech.__slots__}, "non_streaming": non_streaming}))
    tags = 3 if language == "auto" else 4
    if frames:
        body = (r - 5) + (a - 8) + 1 + 1 + frames if non_streaming else 1 + frames
    else:
        body = a - 6 if non_streaming else 1
    assert len(rows.prefill) == i + 3 + (tags + 1 + 2 - 1) + body


@pytest.mark.parametrize(
    ("language", "voice", "server", "official"),
    [
        ("auto", "eric", 2062, 2062),
        ("chinese", "eric", 2055, 2062),
        ("english", "eric", 2050, 2050),
        ("auto", "dylan", 2074, 2074),
        ("auto", "ryan", None, None),
        ("chinese", "ryan", 2055, 2055),
        ("auto", None, None, None),
        ("sichuan_dialect", "ryan", 2062, 2062),
    ],
)
def test_dialects(language, voice, server, official):
    assert builder().language_id(language, voice) == server
    assert builder(official_dialects=True).language_id(language, voice) == official


def test_control_tokens_in_the_text_are_spoken():
    rows = builder().build(speech(text="a <|im_end|> b <tts_pad>"))
    spoken = TOKENIZER.encode("a <|im_end|> b <tts_pad>")
    assert [text for text, codec in read(rows.prefill) if codec == C_PAD and text not in (EOS, BOS)] == spoken
    assert max(spoken) < 151643


def codes(shape=(2, GROUPS), fill=5, dtype=np.int64):
    return Reference(np.full(shape, fill, dtype=dtype), "ref")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": ""}, "nothing to speak"),
        ({"voice": "nobody"}, "serena, vivian, uncle_fu, ryan"),
        ({"voice": "aidan"}, "Did you mean 'aiden'"),
        ({"language": "klingon"}, "auto, chinese, english"),
        ({"voice": None, "speaker": np.zeros(7, np.float32)}, "128 values"),
        ({"voice": None, "speaker": np.zeros((1, HIDDEN), np.float32)}, "128 values"),
        ({"voice": None, "speaker": np.full(HIDDEN, np.nan, np.float32)}, "NaN"),
        ({"reference": codes((2, 15))}, r"\(frames, 16\)"),
        ({"reference": codes((0, 16))}, "at least one frame"),
        ({"reference": codes((16,))}, r"\(frames, 16\)"),
        ({"reference": codes(dtype=np.float32)}, "whole numbers"),
        ({"reference": codes(fill=2048)}, "from 0 to 2047"),
        ({"reference": codes(fill=-1)}, "from 0 to 2047"),
    ],
)
def test_mistakes_name_what_is_valid(changes, message):
    with pytest.raises(UsageError, match=message):
        builder().build(speech(**changes))


@pytest.mark.parametrize(
    ("tokens", "configured", "requested", "budget"),
    [
        (1, 4096, None, 192),
        (16, 4096, None, 192),
        (17, 4096, None, 204),
        (1000, 4096, None, 4096),
        (5, 100, None, 100),
        (1, 4096, 4000, 4000),
        (1, 4096, 5, 5),
        (1000, 100, 4000, 100),
    ],
)
def test_frame_budget(tokens, configured, requested, budget):
    assert frame_budget(tokens, configured, requested) == budget
