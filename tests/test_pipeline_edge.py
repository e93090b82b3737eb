"""What a device adds to a deploy file: edge and playback keys."""

import pytest

from ouzel.errors import ConfigError
from ouzel.pipeline import EdgeOptions, Overrides, Playback, load_deploy


@pytest.fixture
def deploy(tmp_path):
    def loader(text, name="d.yaml", **options):
        path = tmp_path / name
        path.write_text(text)
        return load_deploy(path, **options)

    return loader


def test_defaults(deploy):
    found = deploy("{}")
    assert found.playback == Playback(schedule=None, high_water_s=2.0, gate=True)
    assert found.stage(0).edge == EdgeOptions(runtime=None, threads=0, precision="auto", device="cpu")


STAGE = "stages: [{stage_id: 0, edge: {runtime: onnxruntime, threads: 2, precision: int8, device: npu0}}]"
TOP = "edge: {stages: {0: {runtime: onnxruntime, threads: 2, precision: int8, device: npu0}}}"


@pytest.mark.parametrize("text", [STAGE, TOP, TOP.replace("0: {", "'0': {")])
def test_both_forms(deploy, text):
    assert deploy(text).stage(0).edge == EdgeOptions("onnxruntime", 2, "int8", "npu0")
    assert deploy(text).stage(1).edge == EdgeOptions()


def test_the_stages_own_form_wins_key_by_key_and_the_command_line_over_both(deploy):
    text = "edge: {stages: {0: {threads: 2, precision: int8}}}\nstages: [{stage_id: 0, edge: {threads: 3, device: gpu}}]"
    assert deploy(text).stage(0).edge == EdgeOptions(None, 3, "int8", "gpu")
    given = Overrides(stages={0: {"edge": {"threads": 4}}})
    assert deploy(text, overrides=given).stage(0).edge == EdgeOptions(None, 4, "int8", "gpu")


def test_the_predictor_follows_the_talker_but_for_its_own_keys(deploy):
    text = "edge: {stages: {0: {runtime: a, threads: 2, precision: q4, device: gpu, predictor: {%s}}}}"

    def predictor(keys: str) -> EdgeOptions:
        return deploy(text % keys).stage(0).edge.of_predictor()

    assert predictor("") == EdgeOptions("a", 2, "q4", "gpu")
    assert predictor("threads: 1, precision: q8") == EdgeOptions("a", 1, "q8", "gpu")
    assert predictor("runtime: b") == EdgeOptions("b", 2)  # another runtime has other names for devices and precisions
    assert predictor("runtime: b, device: npu") == EdgeOptions("b", 2, "auto", "npu")
    nested = deploy(
        "stages: [{stage_id: 0, edge: {predictor: {threads: 1}}}]",
        overrides=Overrides(stages={0: {"edge": {"predictor": {"runtime": "b"}}}}),
    )
    assert nested.stage(0).edge.of_predictor() == EdgeOptions("b", 1)


def test_another_runtime_starts_from_its_own_precision_and_device():
    edge = EdgeOptions("a", 2, "q4", "gpu", {"precision": "q8", "threads": 1})
    assert edge.changed({"threads": 4}) == EdgeOptions("a", 4, "q4", "gpu", {"precision": "q8", "threads": 1})
    assert edge.changed({"runtime": "b"}) == EdgeOptions("b", 2, predictor={"threads": 1})
    assert edge.changed({"runtime": "b", "precision": "int8"}) == EdgeOptions("b", 2, "int8", predictor={"threads": 1})
    assert EdgeOptions(precision="int8").changed({"runtime": "b"}) == EdgeOptions("b", precision="int8")


def test_an_overlay_changes_one_key(deploy):
    deploy("edge: {stages: {1: {threads: 2, runtime: a}}}\nplayback: {schedule: full, gate: false}", "base.yaml")
    found = deploy("base_config: base.yaml\nedge: {stages: {1: {threads: 3}}}\nplayback: {gate: true}")
    assert found.stage(1).edge == EdgeOptions("a", 3)
    assert found.playback == Playback("full", 2.0, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "stages: [{stage_id: 0, edge: {thread: 1}}]",
            r"d\.yaml: stages\[0\]\.edge: Unknown edge key 'thread'.*'threads'.*runtime",
        ),
        ("edge: {stages: {0: {thread: 1}}}", r"edge\.stages\.0: Unknown edge key 'thread'"),
        ("edge: {0: {threads: 1}}", r"edge: Unknown key '0'.*Valid choices: stages"),
        ("edge: {stages: {talker: {threads: 1}}}", "'talker' is not a stage id"),
        ("edge: {stages: {4: {threads: 1}}}", r"d\.yaml: Unknown stage of pipeline 'qwen3_tts' '4'.*Valid choices: 0, 1"),
        ("edge: [{threads: 1}]", "edge must be a mapping"),
        ("edge: {stages: {0: {threads: -1}}}", r"edge\.stages\.0\.threads must be a whole number of at least 0, found -1"),
        ("edge: {stages: {0: {threads: two}}}", r"edge\.stages\.0\.threads must be a whole number"),
        ("edge: {stages: {0: {precision: 4}}}", r"precision must be text, found 4"),
        ("edge: {stages: {0: {predictor: onnxruntime}}}", r"edge\.stages\.0\.predictor must be a mapping"),
        ("edge: {stages: {0: {predictor: {thread: 1}}}}", r"predictor: Unknown edge key of a predictor 'thread'.*'threads'"),
        ("edge: {stages: {0: {predictor: {predictor: {}}}}}", r"Unknown edge key of a predictor 'predictor'"),
        ("edge: {stages: {0: {predictor: {threads: -1}}}}", r"predictor\.threads must be a whole number of at least 0"),
        ("edge: {stages: {0: {runtime: 5}}}", r"runtime must be text, found 5"),
        ("edge: {stages: {0: {device: ''}}}", r"device must be text, found ''"),
        ("playback: {shedule: auto}", r"playback: Unknown playback key 'shedule'. Did you mean 'schedule'"),
        ("playback: {schedule: fast}", "playback.schedule must be one of fixed, ramp, adaptive, auto, full, found 'fast'"),
        ("playback: {high_water_s: 0}", "high_water_s must be a number above 0, found 0"),
        ("playback: {gate: 1}", "gate must be true or false, found 1"),
        ("playback: auto", "playback must be a mapping"),
        ("playback: {schedule: ramp}", r"schedule ramp needs codec_chunk_ramp"),
    ],
)
def test_mistakes_are_named(deploy, text, message):
    with pytest.raises(ConfigError, match=message):
        deploy(text)


CONNECTED = (
    "connectors: {{c: {{name: SharedMemoryConnector, extra: {{{extra}}}}}}}\n"
    "stages: [{{stage_id: 0, output_connectors: {{to_stage_1: c}}}}]\n"
)


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ("", "fixed"),
        ("codec_chunk_ramp: [4, 25]", "ramp"),
        ("codec_chunk_ramp: [4, 25], codec_chunk_adaptive: true", "adaptive"),
    ],
)
def test_without_a_schedule_the_connector_decides_as_at_the_server(deploy, extra, kind):
    assert deploy(CONNECTED.format(extra=extra)).schedule == kind


@pytest.mark.parametrize("kind", ["fixed", "ramp", "adaptive", "auto", "full"])
def test_a_schedule_overrides_the_connector(deploy, kind):
    text = CONNECTED.format(extra="codec_chunk_ramp: [4, 25]") + f"playback: {{schedule: {kind}}}"
    assert deploy(text).schedule == kind
    assert deploy(text, overrides=Overrides(async_chunk=False)).schedule == "full"
