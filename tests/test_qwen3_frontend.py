"""The front end of a bundle: what a request may ask for, what is filled in, and the files it is made of."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ouzel.bundle import BundleWriter, open_bundle
from ouzel.errors import BundleError, CheckpointError, UsageError
from ouzel.models.base import Family, Frontend
from ouzel.models.qwen3_tts import FAMILY
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.tables import CODEC, TEXT
from ouzel.models.qwen3_tts.text_side import check_belongs
from ouzel.models.qwen3_tts.tokenizer import read_tokenizer
from ouzel.request import SpeechRequest

KINDS = {"CustomVoice": "custom_voice", "VoiceDesign": "voice_design", "Base": "base"}
VECTOR = np.full(64, 0.1, dtype=np.float32)
CODES = np.ones((3, 16), dtype=np.int64)
CLONE = {"speaker_embedding": VECTOR}
IN_CONTEXT = {**CLONE, "ref_codes": CODES, "ref_text": "Hello."}


def write_bundle(folder: Path, out: Path, weights: str = "fp32") -> Path:
    with BundleWriter(out) as writer:
        writer.describe(family=FAMILY.name)
        FAMILY.write_frontend(FAMILY.read_checkpoint(folder), writer, weights, lambda label, done: None)
    return out


@pytest.fixture(scope="module")
def frontends(nano_checkpoint, tmp_path_factory):
    out = tmp_path_factory.mktemp("bundles")
    return {task: FAMILY.frontend(open_bundle(write_bundle(nano_checkpoint(kind), out / task))) for task, kind in KINDS.items()}


def request(**fields):
    return SpeechRequest(**{"text": "Hello world.", **fields})


def test_objects_keep_to_the_protocols(frontends):
    assert isinstance(FAMILY, Family)
    assert all(isinstance(f, Frontend) for f in frontends.values())


def test_what_a_bundle_offers(frontends):
    f = frontends["CustomVoice"]
    assert (f.task, f.groups, f.hidden_size, f.sample_rate, f.stop_token_id) == ("CustomVoice", 16, 64, 24000, 2150)
    assert [v.name for v in f.voices][:2] == ["serena", "vivian"]
    assert {v.name: v.language for v in f.voices}["eric"] == "sichuan_dialect"
    assert f.languages[:3] == ("auto", "chinese", "english")
    assert f.count_tokens("abc") == 3
    assert list(frontends["Base"].voices) == []


def test_defaults_are_filled_in(frontends):
    r = frontends["CustomVoice"].resolve(request())
    assert (r.task_type, r.voice, r.language, r.non_streaming_mode) == ("CustomVoice", "serena", "auto", True)
    r = frontends["VoiceDesign"].resolve(request(instructions=" An old man. "))
    assert (r.task_type, r.voice, r.instructions, r.non_streaming_mode) == ("VoiceDesign", None, "An old man.", True)
    r = frontends["Base"].resolve(request(**CLONE))
    assert (r.task_type, r.voice, r.non_streaming_mode) == ("Base", None, False)


def test_names_in_any_case(frontends):
    r = frontends["CustomVoice"].resolve(request(voice=" Uncle_Fu", language="ENGLISH", task_type="customvoice"))
    assert (r.voice, r.language, r.task_type) == ("uncle_fu", "english", "CustomVoice")
    assert frontends["CustomVoice"].resolve(request(voice="default", language="Auto", instructions=" ")).instructions is None


@pytest.mark.parametrize(
    ("task", "fields"),
    [("CustomVoice", {"voice": "Ryan"}), ("VoiceDesign", {"instructions": "x"}), ("Base", CLONE), ("Base", IN_CONTEXT)],
)
@pytest.mark.parametrize("layout", [None, True, False])
def test_a_resolved_request_stays_and_gives_rows(frontends, task, fields, layout):
    f = frontends[task]
    resolved = f.resolve(request(non_streaming_mode=layout, **fields))
    assert f.resolve(resolved) == resolved
    rows = f.rows(resolved, "Hello world.")
    assert rows.prefill.shape[1] == 64
    assert np.isfinite(rows.prefill).all()
    assert len(rows.trailing) == 0 if resolved.non_streaming_mode else len(rows.trailing) > 0


@pytest.mark.parametrize(
    ("task", "fields", "message"),
    [
        ("CustomVoice", {"text": "  \n\t "}, "cannot be empty"),
        ("CustomVoice", {"voice": "rian"}, "Did you mean 'ryan'"),
        ("CustomVoice", {"language": "Klingon"}, "Valid choices: auto, chinese, english"),
        ("CustomVoice", {"task_type": "Base"}, "This is a CustomVoice model; it cannot do Base"),
        ("CustomVoice", {"task_type": "Singing"}, "CustomVoice, VoiceDesign, Base"),
        ("CustomVoice", CLONE, r"cannot do Base \(speaker_embedding given\)"),
        ("CustomVoice", {**CLONE, "task_type": "CustomVoice"}, "only Base models take a reference"),
        ("CustomVoice", {"ref_text": "x"}, r"\(ref_text given\)"),
        ("CustomVoice", {"max_new_tokens": 0}, "from 1 to 4096"),
        ("CustomVoice", {"max_new_tokens": 4097}, "from 1 to 4096"),
        ("CustomVoice", {"instructions": "x" * 501}, "at most 500 characters, but have 501"),
        ("VoiceDesign", {}, "needs instructions"),
        ("VoiceDesign", {"instructions": "  "}, "needs instructions"),
        ("VoiceDesign", {"instructions": "x", "voice": "ryan"}, "describe it in the instructions"),
        ("Base", {}, "needs a reference voice"),
        ("Base", {"voice": "vivian"}, "no built-in voices"),
        ("Base", {"ref_codes": CODES, "ref_text": "x"}, "needs a reference voice"),
        ("Base", {**CLONE, "ref_codes": CODES}, "ref_text, what is said in the reference is missing"),
        ("Base", {**CLONE, "ref_codes": CODES, "ref_text": " "}, "ref_text, what is said in the reference is missing"),
        ("Base", {**CLONE, "ref_text": "x"}, "ref_codes is missing"),
    ],
)
def test_mistakes_name_what_is_valid(frontends, task, fields, message):
    with pytest.raises(UsageError, match=message):
        frontends[task].resolve(request(**fields))


def test_the_small_model_takes_no_instructions(frontends):
    f = frontends["CustomVoice"]
    assert f.resolve(request(instructions="Happily.")).instructions == "Happily."
    object.__setattr__(f.config, "tts_model_size", "0b6")
    try:
        with pytest.raises(UsageError, match=r"1\.7B"):
            f.resolve(request(instructions="Happily."))
    finally:
        object.__setattr__(f.config, "tts_model_size", "1b7")


def test_rows_depend_on_what_is_asked(frontends):
    f = frontends["CustomVoice"]
    base = f.rows(f.resolve(request()), "Hello.").prefill
    for other in (request(voice="ryan"), request(language="german"), request(instructions="Slowly.")):
        rows = f.rows(f.resolve(other), "Hello.").prefill
        assert rows.shape != base.shape or not np.array_equal(rows, base)


@pytest.mark.parametrize(("weights", "dtype", "limit"), [("fp32", np.float32, 1e-5), ("int8", np.float16, 4e-3)])
def test_text_rows_are_projected_once(nano_checkpoint, tmp_path, weights, dtype, limit):
    folder = nano_checkpoint("custom_voice")
    checkpoint, bundle = Checkpoint(folder), open_bundle(write_bundle(folder, tmp_path / "out", weights))
    rows = torch.from_numpy(checkpoint.text_rows(0, checkpoint.config.talker.text_vocab_size))
    first, first_bias, second, second_bias = map(torch.from_numpy, checkpoint.text_projection())
    expected = torch.nn.functional.silu(rows @ first.T + first_bias) @ second.T + second_bias
    text = bundle.array(TEXT)
    assert text.dtype == dtype
    assert np.abs(text.astype(np.float32) - expected.numpy()).max() < limit
    assert np.array_equal(bundle.array(CODEC), checkpoint.codec_embedding().astype(dtype))


def test_tables_of_another_model_are_refused(nano_checkpoint, tmp_path):
    bundle = open_bundle(write_bundle(nano_checkpoint("custom_voice"), tmp_path / "out"))
    np.save(bundle.root / CODEC, np.zeros((3072, 32), np.float32))
    with pytest.raises(BundleError, match=r"codec\.npy has shape \(3072, 32\), config\.json says \(3072, 64\)"):
        FAMILY.frontend(bundle)


def test_a_tokenizer_of_another_model_is_refused(nano_checkpoint, tiny_checkpoint):
    with pytest.raises(CheckpointError, match="do not belong together"):
        check_belongs(read_tokenizer(nano_checkpoint("base")), Checkpoint(tiny_checkpoint("base")).config)


def test_recognised_by_its_config():
    assert FAMILY.recognises({"model_type": "qwen3_tts", "tokenizer_type": "qwen3_tts_tokenizer_12hz"})
    assert not FAMILY.recognises({"model_type": "qwen3_tts", "tokenizer_type": "qwen3_tts_tokenizer_25hz"})
    assert not FAMILY.recognises({})
