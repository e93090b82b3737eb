"""Families, runtimes and the lazy registry under them."""

import logging
import sys
from importlib import metadata

import pytest

from ouzel.errors import ConfigError, MissingExtraError, OuzelError, UsageError
from ouzel.models import families, get_family, recognise_family, register_family, unregister_family
from ouzel.plugins import Registry, load_target
from ouzel.runtimes import Offer, StageOptions, get_runtime, register_runtime, runtimes, unregister_runtime


class ToyFamily:
    name = "toy"

    def pipeline(self):
        raise UsageError("toy")

    def recognises(self, config):
        return config.get("model_type") == "toy"

    def read_checkpoint(self, path):
        return path

    def write_frontend(self, checkpoint, writer, weights, progress):
        progress("tables", 1.0)

    def networks(self, checkpoint):
        return checkpoint

    def frontend(self, bundle):
        return bundle


class ToyRuntime:
    name = "toy"
    offer = Offer({})

    def status(self):
        return None

    def load_talker(self, bundle, artifact, options):
        return None

    load_predictor = load_decoder = load_talker

    def convert(self, networks, writer, weights, decoder, progress):
        return None


@pytest.fixture
def plugin_module(tmp_path, monkeypatch):
    def write(name, body):
        (tmp_path / f"{name}.py").write_text(body)
        monkeypatch.syspath_prepend(str(tmp_path))
        sys.modules.pop(name, None)
        return name

    return write


def entry_points(monkeypatch, *points):
    found = metadata.EntryPoints(metadata.EntryPoint(name, value, "g") for name, value in points)
    monkeypatch.setattr(metadata, "entry_points", lambda group: found if group == "g" else metadata.EntryPoints())


def test_builtins_are_listed_without_being_imported():
    assert "qwen3_tts" in families()
    assert "onnxruntime" in runtimes()
    sheet = Registry("thing", {"absent": "no_such_module:x"})
    assert sheet.names() == ("absent",)


@pytest.mark.parametrize(("get", "near", "kind"), [(get_family, "qwen3_tts", "family"), (get_runtime, "onnxruntime", "runtime")])
def test_an_unknown_name_lists_the_choices(get, near, kind):
    with pytest.raises(UsageError, match=f"Unknown .*{kind}.*Did you mean '{near}'"):
        get(near[:-1])


def test_families_register_and_recognise():
    family = ToyFamily()
    register_family(family)
    try:
        assert get_family("toy") is family
        assert recognise_family({"model_type": "toy"}) is family
    finally:
        unregister_family("toy")
    with pytest.raises(OuzelError, match=r"'toy'.*no known model family"):
        recognise_family({"model_type": "toy"})


def test_a_broken_family_does_not_hide_the_others(caplog):
    register_family(ToyFamily())
    register_family("no_such_module:x", name="aaa_broken")
    try:
        assert recognise_family({"model_type": "toy"}).name == "toy"
    finally:
        unregister_family("toy")
        unregister_family("aaa_broken")
    assert "aaa_broken" in caplog.text


def test_runtimes_register():
    register_runtime(ToyRuntime())
    try:
        assert get_runtime("toy").name == "toy"
        assert "toy" in runtimes()
    finally:
        unregister_runtime("toy")
    assert "toy" not in runtimes()
    assert StageOptions() == StageOptions(threads=0, precision="auto", device="cpu")


@pytest.mark.parametrize(
    ("register", "get", "unregister"),
    [(register_family, get_family, unregister_family), (register_runtime, get_runtime, unregister_runtime)],
)
def test_an_object_without_the_methods_is_refused(register, get, unregister):
    register(object(), name="hollow")
    try:
        with pytest.raises(ConfigError, match="does not offer"):
            get("hollow")
    finally:
        unregister("hollow")


def test_entry_points_are_found_and_loaded_once(monkeypatch, plugin_module):
    module = plugin_module("ouzel_toy_plugin", "count = 0\nclass Thing: pass\nITEM = Thing()\n")
    entry_points(monkeypatch, ("late", f"{module}:ITEM"))
    registry = Registry("thing", {}, group="g")
    assert registry.names() == ("late",)
    assert module not in sys.modules
    assert registry.get("late") is registry.get("late")


def test_a_broken_entry_point_is_reported_with_its_name(monkeypatch, plugin_module):
    module = plugin_module("ouzel_bad_plugin", "raise RuntimeError('half installed')\n")
    entry_points(monkeypatch, ("bad", f"{module}:ITEM"), ("gone", "no_such_module:x"))
    registry = Registry("thing", {}, group="g")
    with pytest.raises(ConfigError, match=r"thing 'bad' \(ouzel_bad_plugin:ITEM\).*RuntimeError: half installed"):
        registry.get("bad")
    with pytest.raises(ConfigError, match="thing 'gone'"):
        registry.get("gone")


def test_a_plugin_may_say_which_extra_it_lacks(plugin_module):
    module = plugin_module(
        "ouzel_extra_plugin", "from ouzel.errors import MissingExtraError\nraise MissingExtraError('pip install x')\n"
    )
    with pytest.raises(MissingExtraError, match="pip install x"):
        load_target(f"{module}:ITEM", "thing")


@pytest.mark.parametrize("target", ["module", "module:", ":attr"])
def test_a_target_needs_module_and_attribute(target):
    with pytest.raises(ConfigError, match=r"package\.module:attribute"):
        load_target(target, "thing")


def test_who_wins_a_name(monkeypatch, caplog):
    entry_points(monkeypatch, ("a", "no_such_module:x"), ("b", "builtins:dict"))
    registry = Registry("thing", {"a": "builtins:list"}, group="g")
    assert registry.get("a") is list
    assert "no_such_module:x is ignored" in caplog.text
    with caplog.at_level(logging.WARNING, "ouzel.plugins"):
        registry.register("a", tuple)
    assert "replaces" in caplog.text
    assert registry.get("a") is tuple
    registry.unregister("a")
    assert registry.get("a") is list
    assert registry.get("b") is dict


@pytest.mark.parametrize(("get", "name"), [(get_family, "qwen3_tts"), (get_runtime, "onnxruntime")])
def test_the_builtins_keep_their_protocols(get, name):
    assert get(name).name == name
