"""Which runtime, weights and device each stage gets: the bundle's word, the deploy file's, the command line's; and fallback."""

from __future__ import annotations

import logging

import pytest

import ouzel
from ouzel.api.load import configure
from ouzel.api.placement import Placed, place_stages
from ouzel.bundle import open_bundle
from ouzel.errors import BundleError, ConfigError, MissingExtraError, OuzelError, UsageError
from ouzel.models.qwen3_tts.pipeline import PIPELINE
from ouzel.pipeline import Overrides, parse_overrides
from toy_bundle import registered, write_bundle


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Two runtimes, each with int4 (the first) and fp32 language models and an fp32 decoder."""
    return write_bundle(tmp_path_factory.mktemp("bundles") / "two", ("toy", "other"))


@pytest.fixture
def toys():
    with registered("toy", "other") as runtime:
        yield runtime


def placed(path, tmp_path, edge="", *, flags="", fallback=False, **places) -> dict[str, tuple[str, str, str, int]]:
    """stage -> (runtime, weights, device, threads) with this `edge:` block and these arguments."""
    deploy = tmp_path / "deploy.yaml"
    deploy.write_text(f"pipeline: qwen3_tts\nedge: {{stages: {{{edge}}}}}\n")
    given = parse_overrides([flags]) if flags else None
    config = configure(deploy, None, PIPELINE, given, places.pop("threads", None), places)
    found = place_stages(open_bundle(path), config, fallback=fallback).placed
    return {stage: (at.runtime, at.weights, at.device, at.threads) for stage, at in found.items()}


TOY = {stage: ("toy", weights, "cpu", 0) for stage, weights in (("talker", "int4"), ("predictor", "int4"), ("decoder", "fp32"))}


def on(runtime: str, weights: str = "int4", device: str = "cpu", threads: int = 0) -> tuple[str, str, str, int]:
    return runtime, weights, device, threads


def both(*place, **options) -> dict[str, tuple[str, str, str, int]]:
    """Talker and predictor at one place."""
    return dict.fromkeys(("talker", "predictor"), on(*place, **options))


@pytest.mark.parametrize(
    ("edge", "flags", "places", "different"),
    [
        ("", "", {}, {}),
        ("0: {runtime: other}", "", {}, both("other")),
        ("1: {runtime: other, threads: 2}", "", {}, {"decoder": on("other", "fp32", threads=2)}),
        ("0: {precision: fp32, device: npu}", "", {}, both("toy", "fp32", "npu")),
        ("0: {predictor: {runtime: other}}", "", {}, {"predictor": on("other")}),
        ("0: {predictor: {precision: fp32, threads: 1}}", "", {}, {"predictor": on("toy", "fp32", threads=1)}),
        ("", "", {"talker": "other"}, both("other")),
        ("", "", {"talker": "other", "predictor": "toy"}, {"talker": on("other")}),
        ("", "", {"decoder": "other"}, {"decoder": on("other", "fp32")}),
        ("0: {runtime: toy, precision: fp32, device: npu}", "", {"talker": "other"}, both("other")),
        ("0: {precision: fp32}", "", {"talker": "other"}, both("other", "fp32")),
        ("0: {runtime: toy}", "--stage-0-edge_precision=fp32", {"talker": "other"}, both("other", "fp32")),
        ("", "", {"threads": 1, "talker": {"threads": 2}}, {**both("toy", threads=2), "decoder": on("toy", "fp32", threads=1)}),
        ("0: {predictor: {threads: 3}}", "", {"threads": 1}, {k: (*v[:3], 1) for k, v in TOY.items()}),
        ("", "", {"decoder": {"precision": "bf16"}}, {}),  # no weights of that name, but the runtime can compute so
    ],
)
def test_who_decides(path, toys, tmp_path, edge, flags, places, different):
    assert placed(path, tmp_path, edge, flags=flags, **places) == TOY | different


def test_what_a_runtime_gets_to_know(path, toys, tmp_path):
    placed(path, tmp_path, decoder={"precision": "bf16", "threads": 2, "device": "npu"})
    stage, weights, options = toys.loaded[-1]
    assert (stage, weights) == ("decoder", "fp32")
    assert (options.precision, options.threads, options.device) == ("bf16", 2, "npu")


def test_a_predictor_that_the_talkers_runtime_lacks_stays_where_the_bundle_wants_it(toys, tmp_path):
    from ouzel.bundle import BundleWriter

    source = open_bundle(write_bundle(tmp_path / "full", ("toy", "other")))
    with BundleWriter(source.root, base=source) as writer:
        for artifact in [a for a in writer.artifacts if (a.stage, a.runtime) == ("predictor", "other")]:
            writer.drop(artifact)
    assert placed(source.root, tmp_path, talker="other") == TOY | {"talker": on("other")}


@pytest.mark.parametrize(
    ("places", "error", "message"),
    [
        ({"talker": "third"}, BundleError, "no 'talker' for third. Valid choices: toy int4, toy fp32, other int4, other fp32"),
        ({"predictor": "third"}, BundleError, "no 'predictor' for third"),
        (
            {"decoder": {"precision": "int8"}},
            UsageError,
            "'int8'. Valid choices: auto, fp32, bf16. The bundle has it for toy fp32",
        ),
        ({"decoder": {"device": "gpu"}}, UsageError, "Unknown device of toy 'gpu'. Did you mean 'npu'"),
        ({"decoder": {"thread": 1}}, ConfigError, "the place of the decoder: Unknown edge key 'thread'"),
        ({"talker": {"threads": -1}}, ConfigError, "the place of the talker: threads must be a whole number"),
        ({"threads": -1}, ConfigError, "threads must be 0 or more, not -1"),
    ],
)
def test_what_cannot_be_is_an_error(path, toys, tmp_path, places, error, message):
    with pytest.raises(error) as caught:
        placed(path, tmp_path, **places)
    assert message in str(caught.value)


def test_a_runtime_that_is_not_active_is_an_error_and_with_fallback_a_warning(path, toys, tmp_path, caplog):
    toys.why_not = "its library is missing"
    with pytest.raises(MissingExtraError, match="Runtime toy cannot be used here: its library is missing; pip install toy"):
        placed(path, tmp_path)
    with caplog.at_level(logging.WARNING, "ouzel.api"):
        found = placed(path, tmp_path, "0: {threads: 2}", fallback=True)
    assert found == {"talker": on("other", threads=2), "predictor": on("other", threads=2), "decoder": on("other", "fp32")}
    assert "its library is missing; pip install toy. The talker runs on other, int4, cpu, instead." in caplog.text
    assert "The predictor runs" not in caplog.text  # it follows the talker; nobody asked for another place
    assert "The decoder runs on other" in caplog.text


@pytest.mark.parametrize("asked", [{"device": "gpu"}, {"precision": "int8"}])
def test_another_device_is_nearer_than_another_runtime(path, toys, tmp_path, asked):
    found = placed(path, tmp_path, talker={"runtime": "other", **asked}, fallback=True)
    assert found == TOY | {"talker": on("other"), "predictor": on("other")}


def test_when_nothing_is_left_the_first_reason_is_told(path, toys, tmp_path, monkeypatch):
    for name in ("toy", "other"):
        monkeypatch.setattr(ouzel.runtimes.get_runtime(name), "why_not", f"{name} is gone")
    with pytest.raises(MissingExtraError, match="toy is gone"):
        placed(path, tmp_path, fallback=True)


def test_a_stage_of_another_kind_of_error_is_not_hidden(path, toys, tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(toys, "load_talker", broken)
    with pytest.raises(ZeroDivisionError):
        placed(path, tmp_path, fallback=True)


def test_load_takes_places_and_the_voice_knows_them(path, toys, tmp_path):
    with ouzel.load(path, talker="other", predictor="toy", threads=2, warm_up=False, deploy="qwen3_tts") as voice:
        assert voice.placement == {
            "talker": Placed("talker", "other", "int4", threads=2),
            "predictor": Placed("predictor", "toy", "int4", threads=2),
            "decoder": Placed("decoder", "toy", "fp32", threads=2),
        }
        assert voice.say("Hello.").finish_reason == "stop"
    given = Overrides(stages={0: {"edge_runtime": "other"}})
    with ouzel.load(path, overrides=given, fallback=True, warm_up=False) as voice:
        assert voice.placement["talker"].runtime == "other"
    with pytest.raises(OuzelError, match="no 'decoder' for none"):
        ouzel.load(path, decoder="none")
