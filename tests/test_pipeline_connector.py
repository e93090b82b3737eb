"""Connectors and their chunking parameters (contract 1.3, 1.5, 3.2 to 3.6)."""

import pytest

from ouzel.errors import ConfigError
from ouzel.pipeline import CodecConnector, load_deploy
from ouzel.pipeline.connector import CONNECTOR_CLASSES, read_codec
from ouzel.pipeline.reader import Reader


def codec(**extra):
    notes: list[str] = []
    return read_codec(Reader("f", extra, "extra"), notes), notes


@pytest.fixture
def deploy(tmp_path):
    def loader(text, **options):
        path = tmp_path / "d.yaml"
        path.write_text(text)
        return load_deploy(path, **options)

    return loader


def test_code_defaults_of_the_server():
    found, notes = codec()
    assert found == CodecConnector()
    assert (found.codec_chunk_frames, found.codec_left_context_frames, found.initial_codec_chunk_frames) == (25, 25, 0)
    assert (found.codec_chunk_min_frames, found.codec_chunk_safety_margin_ms) == (2, 50.0)
    assert (found.codec_chunk_ramp_divisor, found.codec_chunk_ramp_delta_min) == (15, 2)
    assert (found.decode_chunk_frames, found.decode_left_context_frames) == (300, 25)
    assert found.ref_audio_artifact_cache_max_entries == 1024
    assert found.schedule == "fixed"
    assert notes == []


@pytest.mark.parametrize(
    ("extra", "frames"),
    [
        ({}, 25),
        ({"codec_left_context_frames": 72}, 72),
        ({"codec_left_context_frames": 72, "ref_code_context_frames": 0}, 72),
        ({"codec_left_context_frames": 72, "ref_code_context_frames": 10}, 10),
        ({"codec_left_context_frames": 0}, 0),
    ],
)
def test_reference_context_follows_the_left_context(extra, frames):
    assert codec(**extra)[0].ref_code_context_frames == frames


@pytest.mark.parametrize("ramp", [[4, 4, 8, 16, 25], "4,4,8,16,25", " 4, 4,8 ,16,25 ", ["4", 4, 8, 16, 25]])
def test_ramp_as_list_or_text(ramp):
    found, notes = codec(codec_chunk_ramp=ramp)
    assert found.codec_chunk_ramp == (4, 4, 8, 16, 25)
    assert found.schedule == "ramp"
    assert notes == []


@pytest.mark.parametrize("ramp", [[4], [], "4", "4,x", [4, None], [4, 0], [4, -1], "4,,8"])
def test_a_ramp_that_cannot_work_is_off(ramp):
    found, notes = codec(codec_chunk_ramp=ramp)
    assert found.codec_chunk_ramp == ()
    assert found.schedule == "fixed"
    assert len(notes) == 1
    assert "switched off" in notes[0]


def test_a_ramp_that_ends_elsewhere_is_kept_with_a_warning():
    found, notes = codec(codec_chunk_ramp=[4, 8])
    assert found.codec_chunk_ramp == (4, 8)
    assert "ends with 8, not codec_chunk_frames 25" in notes[0]


def test_adaptive_goes_before_ramp():
    assert codec(codec_chunk_adaptive=True, codec_chunk_ramp=[4, 25])[0].schedule == "adaptive"


@pytest.mark.parametrize("key", ["codec_chunk_min_frames", "codec_chunk_ramp_divisor", "codec_chunk_ramp_delta_min"])
def test_clamps(key):
    found, notes = codec(**{key: 0})
    assert getattr(found, key) == 1
    assert key in notes[0]
    assert getattr(codec(**{key: 7})[0], key) == 7


def test_an_initial_chunk_above_the_chunk_is_lowered():
    found, notes = codec(initial_codec_chunk_frames=30)
    assert found.initial_codec_chunk_frames == 25
    assert "lowered" in notes[0]
    assert codec(initial_codec_chunk_frames=None)[0].initial_codec_chunk_frames == 0


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("codec_chunk_frames", 0, "a whole number of at least 1"),
        ("codec_chunk_frames", "25", "a whole number of at least 1"),
        ("codec_chunk_frames", True, "a whole number of at least 1"),
        ("codec_left_context_frames", -1, "a whole number of at least 0"),
        ("initial_codec_chunk_frames", -1, "a whole number of at least 0"),
        ("ref_code_context_frames", -1, "a whole number of at least 0"),
        ("codec_chunk_adaptive", 1, "true or false"),
        ("codec_chunk_ramp", 4, "a list of whole numbers"),
        ("codec_chunk_safety_margin_ms", float("nan"), "a number"),
        ("decode_chunk_frames", 0, "a whole number of at least 1"),
    ],
)
def test_wrong_values_name_file_key_and_type(key, value, expected):
    with pytest.raises(ConfigError, match=rf"f: extra\.{key} must be {expected}"):
        codec(**{key: value})


@pytest.mark.parametrize("name", CONNECTOR_CLASSES)
def test_every_class_of_the_server_is_accepted(deploy, name):
    found = deploy(
        f"connectors: {{c: {{name: {name}, extra: {{codec_chunk_frames: 9}}}}}}\n"
        "stages: [{stage_id: 0, output_connectors: {to_stage_1: c}}]"
    )
    assert found.codec_connector().codec_chunk_frames == 9
    assert found.connectors[(0, 1)].name == name


def test_an_undefined_connector_names_the_defined_ones(deploy):
    with pytest.raises(ConfigError, match=r"to_stage_1 names connector 'd', which is not defined. Defined: c"):
        deploy("connectors: {c: {name: NixlConnector}}\nstages: [{stage_id: 0, output_connectors: {to_stage_1: d}}]")


def test_a_connector_may_be_defined_in_place(deploy):
    text = "stages: [{stage_id: 1, input_connectors: {from_stage_0: {name: NixlConnector, extra: {codec_chunk_frames: 8}}}}]"
    assert deploy(text).codec_connector().codec_chunk_frames == 8
    with pytest.raises(ConfigError, match="Unknown connector 'Nixl'"):
        deploy(text.replace("NixlConnector", "Nixl"))


@pytest.mark.parametrize(("order", "frames"), [((0, 1), 8), ((1, 0), 9)])
def test_the_first_stage_in_the_file_decides_an_edge(deploy, order, frames):
    blocks = {
        0: "{stage_id: 0, output_connectors: {to_stage_1: a}}",
        1: "{stage_id: 1, input_connectors: {from_stage_0: b}}",
    }
    connectors = ", ".join(f"{n}: {{name: NixlConnector, extra: {{codec_chunk_frames: {f}}}}}" for n, f in (("a", 8), ("b", 9)))
    found = deploy(f"connectors: {{{connectors}}}\nstages: [{', '.join(blocks[i] for i in order)}]")
    assert found.codec_connector().codec_chunk_frames == frames


def test_both_ends_name_one_class(deploy):
    with pytest.raises(ConfigError, match="edge 0 -> 1 is NixlConnector at one end and SharedMemoryConnector at the other"):
        deploy(
            "connectors: {a: {name: NixlConnector}, b: {name: SharedMemoryConnector}}\n"
            "stages: [{stage_id: 0, output_connectors: {to_stage_1: a}}, {stage_id: 1, input_connectors: {from_stage_0: b}}]"
        )


def test_connectors_go_along_edges(deploy):
    with pytest.raises(ConfigError, match=r"a connector for 0 -> 2\. Edges: 0 -> 1"):
        deploy("connectors: {a: {name: NixlConnector}}\nstages: [{stage_id: 0, output_connectors: {to_stage_2: a}}]")
    with pytest.raises(ConfigError, match="Unknown edge"):
        deploy("{}").codec_connector(1, 0)


def test_notes_are_logged_with_the_file(deploy, caplog):
    deploy(
        "connectors: {a: {name: NixlConnector, extra: {codec_chunk_ramp: [3]}}}\n"
        "stages: [{stage_id: 0, output_connectors: {to_stage_1: a}}]"
    )
    assert "d.yaml: codec_chunk_ramp [3] is switched off" in caplog.text
