"""Bundles with a phone track: ids, prompts, budgets, voices, what is refused, and the whole way to speech."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import ouzel
from ouzel.adapters import TalkerSampling
from ouzel.api.plan import TextOptions, make_plan
from ouzel.bundle import BundleWriter, open_bundle
from ouzel.cli.main import main
from ouzel.errors import BundleError, CheckpointError, UsageError
from ouzel.models.qwen3_tts import FAMILY
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.phone_tokenizer import PROSODY, TRACK, PhoneTokenizer
from ouzel.models.qwen3_tts.tables import INNER
from ouzel.models.qwen3_tts.text_side import read_text_side
from ouzel.models.qwen3_tts.track import SPECIALS, Track
from ouzel.request import SpeechRequest
from phone_case import VOICES, phone_bundle, phone_checkpoint

HELLO = "Hello there, everyone."
START, ASSISTANT, NEWLINE, END = (SPECIALS.index(s) for s in ("<|im_start|>", "assistant", "\n", "<|im_end|>"))
PAD, BOS, EOS = (SPECIALS.index(s) for s in ("<|tts_pad|>", "<|tts_bos|>", "<|tts_eos|>"))


@pytest.fixture(scope="module")
def tokenizer() -> PhoneTokenizer:
    folder = phone_checkpoint()
    return read_text_side(folder, Checkpoint(folder).config)


@pytest.fixture(scope="module")
def bundle():
    return open_bundle(phone_bundle())


@pytest.fixture(scope="module")
def frontend(bundle):
    return FAMILY.frontend(bundle)


@pytest.fixture(scope="module")
def voice():
    with ouzel.load(phone_bundle(), schedule="fixed:2/25", threads=1, stuck=False, warm_up=False) as loaded:
        yield loaded


def request(text: str = HELLO, **fields) -> SpeechRequest:
    return SpeechRequest(text, **fields)


# ---- ids


def test_an_id_is_a_frame_of_the_prosody(tokenizer):
    ids = tokenizer.encode(HELLO)
    assert min(ids) >= len(SPECIALS)
    assert max(ids) < tokenizer.track.size
    form = tokenizer.read(HELLO).form
    thirds, _ = tokenizer.prosody.track(form, "fern", {s: i for i, s in enumerate(tokenizer.track.alphabet)})
    assert len(ids) == tokenizer.track.frames(len(thirds))
    first, *_ = tokenizer.track.parts(np.array(ids))
    assert {tokenizer.track.alphabet[i] for i in first} <= {"_", *form}


def test_an_id_names_the_next_frame():
    track = Track(("_", "a", "b"), ((0, 0, 0), (0, 1, 1), (1, 1, 1), (1, 2, 0), (2, 2, 2)), levels=5, step=2.0)
    pitch = np.repeat([9.0, -4.0, 0.0, 2.1, 0.0], 3).astype(np.float32)[:14]
    ids = track.ids([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0], pitch)
    *three, level = track.parts(ids)
    assert np.stack(three, 1).tolist() == [[0, 1, 1], [1, 1, 1], [1, 2, 0], [0, 0, 0], [0, 0, 0]]
    assert level.tolist() == [0, 2, 3, 2, 2]
    assert Track.parse(json.loads(json.dumps(track.value()))) == track
    assert track.size == len(SPECIALS) + 5 * 5
    # triples that have no id of their own keep their middle phone
    heard = [np.stack(track.parts(track.ids([0, 0, 0, *triple], np.zeros(6, np.float32)))[:3], 1)[0].tolist()
             for triple in ([0, 0, 1], [2, 1, 1], [2, 0, 2], [0, 2, 2])]  # fmt: skip
    assert heard == [[0, 0, 0], [1, 1, 1], [0, 0, 0], [2, 2, 2]]


def test_the_summands_of_a_row_are_its_phones_and_its_level(tokenizer):
    track = tokenizer.track
    parts = track.summands()
    assert parts.shape == (track.size, 4)
    assert parts[: len(SPECIALS), 0].tolist() == list(range(len(SPECIALS)))
    first, second, third, level = track.parts(np.arange(len(SPECIALS), track.size))
    known = {}
    for column, values in enumerate((first, second, third, level)):
        for part, value in zip(parts[len(SPECIALS) :, column].tolist(), values.tolist(), strict=True):
            assert known.setdefault(part, (column, value)) == (column, value)
    assert len(known) == sum(len(set(values.tolist())) for values in (first, second, third, level))
    assert not known.keys() & set(parts[: len(SPECIALS)].ravel().tolist())


def test_the_template_has_ids_of_its_own(tokenizer):
    assert tokenizer.newline == [NEWLINE]
    assert tokenizer.turn("assistant", HELLO) == [ASSISTANT, NEWLINE, *tokenizer.encode(HELLO)]
    assert min(tokenizer.encode("assistant\nHello.")) >= len(SPECIALS)
    assert min(tokenizer.encode("<|im_end|> stop")) >= len(SPECIALS)
    assert tokenizer.token_id("<|im_end|>") == END
    assert tokenizer.token_id("<|endoftext|>") is None
    with pytest.raises(UsageError, match="follows no instructions"):
        tokenizer.turn("user", "Sing.")


def test_speakers_and_speeds_differ(tokenizer):
    fern, moss = (tokenizer.speaking(name, 1.0).encode(HELLO) for name in ("fern", "moss"))
    assert fern == tokenizer.encode(HELLO) == tokenizer.speaking(None, 1.0).encode(HELLO)
    assert fern != moss
    slow, fast = (len(tokenizer.speaking("fern", speed).encode(HELLO)) for speed in (0.5, 2.0))
    assert slow > 1.7 * len(fern)
    assert fast < 0.7 * len(fern)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0, 4.0])
def test_the_estimate_is_near(tokenizer, speed):
    spoken = tokenizer.speaking("moss", speed)
    text = "The quick brown fox jumps over the lazy dog, and then it sleeps. Did you see that? Yes: it was something!"
    assert spoken.estimate(text) == pytest.approx(len(spoken.encode(text)), rel=0.35)
    assert spoken.estimate("你好") == len(spoken.encode("你好")) == 0
    assert spoken.estimate("a") > 0


def test_a_sentence_without_a_mark_ends_like_one_with_it(tokenizer):
    assert tokenizer.encode("Hello there") == tokenizer.encode("Hello there.")
    assert tokenizer.read("Hello there").form[-1] == "."
    assert tokenizer.read("Hello there?").form[-1] == "?"


# ---- the bundle


def test_what_the_bundle_says(bundle, frontend):
    assert bundle.manifest.tokenizer == "phone_track"
    assert {TRACK, PROSODY, INNER, "voices.json"} <= set(bundle.manifest.files)
    assert "tokenizer.json" not in bundle.manifest.files
    assert [v.name for v in frontend.voices] == ["fern", "moss"]
    assert (frontend.voices[0].description, frontend.voices[0].licence) == ("female, a test", "CC0")
    assert (frontend.voices[0].origin, frontend.voices[1].origin) == ("chance", "")
    assert frontend.languages == ("auto", "english")
    assert frontend.stop_token_id == 258  # behind 256 codes


def test_the_bundle_reads_text_as_the_checkpoint_does(tokenizer, frontend):
    resolved = frontend.resolve(request(voice="moss", speed=1.25))
    rows = frontend.rows(resolved, HELLO)
    ids = tokenizer.speaking("moss", 1.25).encode(HELLO)
    assert rows.text_tokens == len(ids)
    assert len(rows.trailing) == len(ids)  # all but the first, and the end id


def test_ids_come_a_frame_each(bundle, tokenizer, frontend):
    rows = frontend.rows(frontend.resolve(request()), HELLO)
    tables = frontend._builder._tables
    codec = tables.codec_rows([frontend.config.talker.codec_pad_id, frontend.config.talker.codec_bos_id])
    ids = tokenizer.encode(HELLO)
    text = tables.text_rows([START, ASSISTANT, NEWLINE, PAD, BOS, *ids, EOS])
    close = {"rtol": 0, "atol": 1e-5}
    np.testing.assert_allclose(rows.prefill[:3], text[:3], **close)
    np.testing.assert_allclose(rows.prefill[-2], text[4] + codec[0], **close)
    np.testing.assert_allclose(rows.prefill[-1], text[5] + codec[1], **close)
    np.testing.assert_allclose(rows.trailing, text[6:], **close)
    np.testing.assert_allclose(rows.pad, text[3], **close)


def test_no_language_means_the_only_one(frontend):
    auto, english = (frontend.rows(frontend.resolve(request(language=name)), HELLO) for name in (None, "English"))
    assert np.array_equal(auto.prefill, english.prefill)


def test_the_rows_know_their_length(tokenizer, frontend):
    frames = len(tokenizer.speaking("fern", 0.8).encode(HELLO))
    assert frontend.rows(frontend.resolve(request(speed=0.8)), HELLO).frames == frames


def test_the_narrow_table_gives_the_rows_of_the_projected_one(frontend):
    checkpoint = Checkpoint(phone_checkpoint())
    first, first_bias, second, second_bias = checkpoint.text_projection()
    hidden = checkpoint.text_rows(5, 9) @ first.T + first_bias
    expected = hidden / (1 + np.exp(-hidden)) @ second.T + second_bias
    np.testing.assert_allclose(frontend._builder._tables.text_rows([5, 6, 7, 8]), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"voice": "vivian"}, "Unknown voice 'vivian'. Valid choices: fern, moss"),
        ({"language": "german"}, "Valid choices: auto, english"),
        ({"instructions": "Happily."}, "follow no instructions"),
        ({"non_streaming_mode": True}, "leave non_streaming_mode out"),
        ({"speed": 0.2}, r"speed must be from 0\.25 to 4, but is 0\.2"),
    ],
)
def test_mistakes(frontend, fields, message):
    with pytest.raises(UsageError, match=message):
        frontend.resolve(request(**fields))


def test_another_text_side_refuses_speed(nano_checkpoint, tiny_bundle):
    plain = FAMILY.frontend(open_bundle(tiny_bundle))
    assert plain.resolve(request(speed=1.0)).speed == 1.0
    with pytest.raises(UsageError, match=r"sets its own pace and cannot speak at speed 1\.2; leave the speed out"):
        plain.resolve(request(speed=1.2))


# ---- damage


def copy_of(source, out):
    shutil.copytree(source, out)
    return out


def test_a_checkpoint_with_a_damaged_text_side_is_refused(tmp_path):
    folder = copy_of(phone_checkpoint(), tmp_path / "c")
    config = Checkpoint(folder).config
    whole = json.loads((folder / TRACK).read_text())

    def refuse(match):
        with pytest.raises(CheckpointError, match=match):
            read_text_side(folder, config)

    for value in (
        {**whole, "triples": ["_|_|Q"]},
        {**whole, "triples": ["_|_"]},
        {**whole, "alphabet": None},
        {"prosody": {}},
        {**whole, "prosody": 3},
    ):
        (folder / TRACK).write_text(json.dumps(value))
        refuse("phone_track.json is not a phone track")
    (folder / TRACK).write_text("{")
    refuse("not valid JSON")
    (folder / TRACK).write_text(json.dumps({**whole, "prosody": {**whole["prosody"], "dilations": [1, 2, 4]}}))
    refuse("do not make a prosody .*layer.2.weight")
    (folder / TRACK).write_text(json.dumps({**whole, "prosody": {**whole["prosody"], "speakers": ["fern", "oak"]}}))
    refuse("names the voices fern, moss, but phone_track.json has fern, oak")
    (folder / TRACK).write_text(json.dumps({**whole, "levels": 300}))
    refuse("they do not belong together")
    (folder / TRACK).write_text(json.dumps(whole))
    (folder / PROSODY).write_bytes((folder / PROSODY).read_bytes()[:-4])
    refuse("truncated")
    (folder / PROSODY).unlink()
    refuse("cannot be read")


def test_an_unknown_kind_of_text_side_names_the_known_ones(tmp_path):
    folder = copy_of(phone_bundle(), tmp_path / "b")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"phone_track"', '"phone_trak"'))
    with pytest.raises(BundleError, match=r"Unknown tokenizer in .*Did you mean 'phone_track'.*hf_bpe, phone_track"):
        FAMILY.frontend(open_bundle(folder))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"oak": {}}, "Unknown voice in .*voices.json 'oak'. Valid choices: fern, moss"),
        ({"fern": {"sex": "female"}}, "Valid choices: language, description, licence, origin"),
        ({"fern": {"licence": 3}}, "licence of 'fern' must be a text, got 3"),
        ({"fern": []}, "'fern' must be a mapping"),
    ],
)
def test_wrong_facts_about_voices(tmp_path, about, message):
    folder = copy_of(phone_checkpoint(), tmp_path / "c")
    (folder / "voices.json").write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match=message), BundleWriter(tmp_path / "out") as writer:
        FAMILY.write_frontend(Checkpoint(folder), writer, "fp32", lambda label, done: None)
    assert not (tmp_path / "out").exists()


# ---- speech


def test_it_speaks(voice, tokenizer):
    speech = voice.say(HELLO, seed=1)
    frames = len(speech.samples) / 1920
    assert 0 < frames <= len(tokenizer.encode(HELLO)) + 10
    assert np.abs(speech.samples).max() > 0.01
    assert np.array_equal(speech.samples, voice.say(HELLO, seed=1, voice="fern").samples)
    assert not np.array_equal(speech.samples[:1920], voice.say(HELLO, seed=1, voice="moss").samples[:1920])


def test_speed_changes_the_length(voice, tokenizer):
    """A random talker may end too early, and else at the budget."""
    for speed in (0.5, 2.0):
        frames = len(tokenizer.speaking("fern", speed).encode(HELLO)) + 10
        lengths = {voice.say(HELLO, seed=seed, speed=speed).metrics.frames for seed in range(6)}
        assert max(lengths) == frames


def test_long_texts_are_spoken_in_pieces(voice, tokenizer):
    text = f"{'This is one more sentence. ' * 7}你好。"
    plan = make_plan(request(text), voice._frontend, TalkerSampling(), 0, TextOptions())
    assert len(plan.segments) > 1
    assert all(s.rows().text_tokens < 150 for s in plan.segments)
    assert sum(s.rows().text_tokens for s in plan.segments) > 6 * len(tokenizer.encode("This is one more sentence."))
    slow = make_plan(request(text, speed=0.5), voice._frontend, TalkerSampling(), 0, TextOptions())
    assert len(slow.segments) > len(plan.segments)


def test_int8_speaks_too():
    with ouzel.load(phone_bundle("int8"), threads=1, stuck=False, warm_up=False) as loaded:
        assert len(loaded.say("Hello.", seed=1).samples)


def test_facts_of_the_voices_are_listed(capsys):
    assert main(["voices", "-m", str(phone_bundle())]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["fern", "english", "female,", "a", "test", "CC0", "chance"]
    assert "languages: auto, english" in err
    assert main(["voices", "--json", "-m", str(phone_bundle())]) == 0
    listed = json.loads(capsys.readouterr().out)["voices"]
    empty = {"language": "english", "description": "", "licence": "", "origin": ""}
    assert listed == [{"name": name} | empty | about for name, about in VOICES.items()]
