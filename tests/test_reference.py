"""A voice from a recording through the Python interface and the command line, on a random Base bundle."""

from __future__ import annotations

import json
import re
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ouzel
from bundles import converted
from cli_run import made
from conftest import cached_checkpoint
from ouzel.api.reference import References
from ouzel.audio.resample import resample
from ouzel.audio.wav import wav_bytes
from ouzel.bundle import open_bundle
from ouzel.cli.main import main
from ouzel.errors import BundleError, UsageError
from ouzel.request import Reference
from test_parity_greedy import CASES

RATE = 24_000
PAGE = Path(__file__).parents[1] / "docs" / "cloning.md"


@pytest.fixture(scope="module")
def bundle() -> Path:
    return converted(cached_checkpoint("nano", "base", encoders=True))


@pytest.fixture(scope="module")
def voice(bundle):
    with ouzel.load(bundle, schedule="fixed:4", stuck=False, threads=1, warm_up=False) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return CASES.recording("odd").astype(np.float32) / 32768


@pytest.fixture
def without(bundle, tmp_path) -> Path:
    """The same bundle as it was before recordings were read."""
    folder = shutil.copytree(bundle, tmp_path / "old")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["artifacts"] = [a for a in manifest["artifacts"] if "encoder" not in a["stage"]]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def counted(bundle: Path, **options) -> tuple[References, list[str]]:
    """References that note each call of an encoder."""
    readers, calls = References(open_bundle(bundle), threads=1, **options), []
    for stage, method in (("speaker_encoder", "embed"), ("codec_encoder", "encode")):
        encoder = readers._encoder(stage)
        original = getattr(encoder, method)

        def noted(heard, stage=stage, original=original):
            calls.append(stage)
            return original(heard)

        setattr(encoder, method, noted)
    return readers, calls


def test_a_voice_speaks_with_the_vector_alone(voice, samples):
    found = voice.reference(samples)
    assert found.speaker_embedding.shape == (64,)
    assert list(found.options()) == ["speaker_embedding"]
    speech = voice.say("Hello.", **found.options(), seed=1, max_new_tokens=9)
    same = voice.say("Hello.", speaker_embedding=found.speaker_embedding, seed=1, max_new_tokens=9)
    assert np.array_equal(speech.samples, same.samples)
    other = voice.reference(samples[::-1].copy())
    assert not np.array_equal(voice.say("Hello.", **other.options(), seed=1, max_new_tokens=9).samples, speech.samples)


def test_a_voice_goes_on_where_the_recording_ends(voice, samples):
    found = voice.reference(samples, "This was said.")
    assert found.ref_codes.shape == (-(-len(samples) // 1920), 16)
    assert found.ref_codes.dtype == np.int64
    assert found.ref_text == "This was said."
    request = replace(ouzel.SpeechRequest("Hello.", seed=1, max_new_tokens=9), **found.options())
    speech = voice.say(request)
    assert not np.array_equal(speech.samples, voice.say(replace(request, ref_codes=None, ref_text=None)).samples)


def test_another_sample_rate_is_the_same_voice(voice, samples):
    finer = resample(samples, RATE, 44_100)
    found = voice.reference(finer, sample_rate=44_100).speaker_embedding
    assert np.array_equal(found, voice.reference(resample(finer, 44_100, RATE)).speaker_embedding)
    assert not np.allclose(found, voice.reference(finer).speaker_embedding, rtol=0.1)


def test_a_recording_is_encoded_once(bundle, samples):
    readers, calls = counted(bundle)
    first = readers.read(samples, None, RATE)
    again = readers.read(samples.copy(), None, RATE)
    assert again.speaker_embedding is first.speaker_embedding
    assert calls == ["speaker_encoder"]
    with_text = readers.read(samples, "Said.", RATE)
    assert with_text.speaker_embedding is first.speaker_embedding
    assert readers.read(samples, "Other words.", RATE).ref_codes is with_text.ref_codes
    assert calls == ["speaker_encoder", "codec_encoder"]
    with pytest.raises(ValueError, match="read-only"):
        first.speaker_embedding[0] = 1
    readers.read(samples, None, RATE - 1)  # another recording, if the same numbers
    assert len(calls) == 3


def test_the_oldest_unused_is_forgotten(bundle, samples):
    readers, calls = counted(bundle, entries=2)
    one, two, three = samples, samples[:-1], samples[:-2]
    for heard in (one, two, one, three, one):
        readers.read(heard, None, RATE)
    assert len(calls) == 3
    readers.read(two, None, RATE)
    assert len(calls) == 4
    nothing, calls = counted(bundle, entries=0)
    assert nothing.read(one, "Said.", RATE).ref_codes is not None
    nothing.read(one, None, RATE)
    assert len(calls) == 3


def test_threads_with_the_same_recording_share_the_work(bundle, samples):
    readers, calls = counted(bundle)
    found: list[Reference] = []
    threads = [threading.Thread(target=lambda: found.append(readers.read(samples, None, RATE))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["speaker_encoder"]
    assert len({id(one.speaker_embedding) for one in found}) == 1


def test_encoders_are_loaded_when_they_are_needed(bundle, samples):
    readers = References(open_bundle(bundle), threads=1)
    readers.check("Said.")
    assert readers._loaded == {}
    readers.read(samples, None, RATE)
    assert list(readers._loaded) == ["speaker_encoder"]


def test_the_deploy_file_says_how_many_are_kept(bundle, tmp_path):
    text = "connectors: {c: {name: SharedMemoryConnector, extra: {ref_audio_artifact_cache_max_entries: 3}}}\n"
    (tmp_path / "my.yaml").write_text(
        text + "base_config: qwen3_tts.yaml\nstages:\n- {stage_id: 0, output_connectors: {to_stage_1: c}}\n"
        "- {stage_id: 1, input_connectors: {from_stage_0: c}}\n"
    )
    with ouzel.load(bundle, deploy=tmp_path / "my.yaml", warm_up=False) as voice:
        assert voice._references._entries == 3


@pytest.mark.parametrize(
    ("text", "message", "param"), [("  ", "ref_text is empty", "ref_text"), (3, "ref_text must be a text", "ref_text")]
)
def test_texts_that_are_none(voice, samples, text, message, param):
    for call in (lambda: voice.reference(samples, text), lambda: voice.check_reference(text)):
        with pytest.raises(UsageError, match=message) as caught:
            call()
        assert caught.value.param == param


def test_recordings_that_do_not_fit(voice, samples):
    with pytest.raises(UsageError, match="1 to 30 s long"):
        voice.reference(samples[: RATE // 2])
    with pytest.raises(UsageError, match="longer"):
        voice.reference(np.tile(samples, 10))


def test_other_models_and_voices_made_by_hand(tiny_bundle, samples):
    with ouzel.load(tiny_bundle, warm_up=False) as named:
        with pytest.raises(UsageError, match="Only Base models take a recording for a voice; this is a CustomVoice model"):
            named.reference(samples)
        by_hand = ouzel.Voice(named.engine, named._frontend)
        with pytest.raises(UsageError, match="so there is no bundle"):
            by_hand.check_reference()


def test_an_older_bundle_loads_and_says_what_to_do(without, samples):
    with ouzel.load(without, warm_up=False) as voice:
        for text, name in ((None, "speaker encoder"), ("Said.", "speaker encoder")):
            with pytest.raises(BundleError, match=rf"has no {name}\. Convert its checkpoint again \(`ouzel convert "):
                voice.reference(samples, text)


def test_convert_adds_what_an_older_bundle_lacks(without, tmp_path):
    """And a checkpoint without encoders gives a bundle without: every other test with a Base model."""
    from ouzel.conversion import convert

    convert(cached_checkpoint("nano", "base", encoders=True), without, add=True, weights="int8")
    found = [(a.stage, a.weights) for a in open_bundle(without).manifest.artifacts]
    assert found.count(("speaker_encoder", "fp32")) == found.count(("codec_encoder", "fp32")) == 1
    assert ("talker", "int8") in found
    assert not [a for a in open_bundle(converted(cached_checkpoint("nano", "base"))).manifest.artifacts if "encoder" in a.stage]


def test_a_damaged_graph_is_one_sentence(without, bundle, samples, tmp_path):
    folder = shutil.copytree(bundle, tmp_path / "damaged")
    manifest = json.loads((folder / "manifest.json").read_text())
    for artifact in manifest["artifacts"]:
        artifact["meta"].pop("hop", None)
        artifact["meta"].pop("least_samples", None)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with ouzel.load(folder, warm_up=False) as voice, pytest.raises(BundleError, match="speaker encoder's 'least_samples'"):
        voice.reference(samples)


@pytest.fixture
def say(tmp_path, bundle, samples, monkeypatch, capsys):
    """Run `ouzel say` beside voice.wav; (exit code, stderr)."""
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "voice.wav").write_bytes(wav_bytes(samples, RATE))
    (tmp_path / "short.wav").write_bytes(wav_bytes(samples[:9000], RATE))
    np.save(tmp_path / "a.npy", np.zeros(64, np.float32))

    def run(*arguments: str) -> tuple[int, str]:
        limits = ["--no-stuck-detector", "--max-new-tokens", "9", "--seed", "1", "-q"]
        code = main(["say", "Hello.", "-m", str(bundle), "-o", "out.wav", *limits, *arguments])
        return code, capsys.readouterr().err

    return run


def test_the_snippet_of_the_documentation_runs(say, tmp_path, bundle, samples):
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "my-voice.wav").write_bytes(wav_bytes(samples, RATE))
    (tmp_path / "home" / "models").mkdir(parents=True)
    (tmp_path / "home" / "models" / "Qwen3-TTS-12Hz-0.6B-Base-int4").symlink_to(bundle)
    exec(compile(snippet, str(PAGE), "exec"), {"__name__": "snippet"})
    assert (tmp_path / "morning.wav").stat().st_size > 44


def test_say_with_a_recording(say, tmp_path):
    assert say("--ref-audio", "voice.wav") == (0, "")
    alone = (tmp_path / "out.wav").read_bytes()
    assert len(alone) > 10_000
    assert say("--ref-audio", "voice.wav", "--ref-text", "This was said.") == (0, "")
    assert (tmp_path / "out.wav").read_bytes() != alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ref-audio", "none.wav"], "The recording none.wav cannot be read: No such file or directory."),
        (["--ref-audio", "short.wav"], "The recording must be 1 to 30 s long, but is 0.4 s."),
        (["--ref-audio", "voice.wav", "--ref-text", " "], "ref_text is empty"),
        (["--ref-audio", "voice.wav", "--ref-codes", "a.npy"], "--ref-audio and --ref-codes both say whose voice it is"),
        (["--ref-audio", "voice.wav", "--speaker-embedding", "a.npy"], "--ref-audio and --speaker-embedding both say"),
        (["--ref-audio", "voice.wav", "-m", "embedded"], "Only Base models take a recording"),
        ([], "This Base model needs a reference voice: give a recording"),
    ],
)
def test_say_refuses(say, tmp_path, arguments, message):
    code, err = say(*arguments)
    assert code == 2
    assert message in err
    assert "out.wav" not in made(tmp_path)
