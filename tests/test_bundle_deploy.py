"""A bundle's own deploy file, and an end id that only this model has."""

from __future__ import annotations

import shutil

import pytest

import ouzel
from ouzel.api.plan import TextOptions, make_plan
from ouzel.bundle import DEPLOY, open_bundle
from ouzel.conversion import convert
from ouzel.errors import ConfigError
from ouzel.models.qwen3_tts import FAMILY
from ouzel.pipeline import load_deploy
from ouzel.request import SpeechRequest
from phone_case import phone_bundle, phone_checkpoint

OWN = "base_config: qwen3_tts.yaml\nstages:\n  - stage_id: 0\n    default_sampling_params: {temperature: 0.25}\n"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle whose checkpoint brought a deploy file along."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copytree(phone_checkpoint(), folder / "checkpoint")
    (folder / "checkpoint" / DEPLOY).write_text(OWN, encoding="utf-8")
    convert(folder / "checkpoint", folder / "bundle", weights="fp32")
    return folder / "bundle"


def temperature(model, **options) -> float:
    with ouzel.load(model, stuck=False, warm_up=False, threads=1, **options) as voice:
        return voice._sampling.temperature


def test_a_bundles_deploy_file_is_the_default(bundle):
    assert open_bundle(bundle).deploy == bundle / DEPLOY
    assert temperature(bundle) == 0.25
    assert temperature(bundle, deploy="qwen3_tts") == 0.9  # one that is named goes first
    assert open_bundle(phone_bundle()).deploy is None
    assert temperature(phone_bundle()) == 0.9


def test_a_bare_base_is_looked_for_beside_the_file_then_in_the_package(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(OWN, encoding="utf-8")
    assert load_deploy(own).talker_sampling().temperature == 0.25
    (tmp_path / "qwen3_tts.yaml").write_text("pipeline: qwen3_tts\nstages: []\n", encoding="utf-8")
    load_deploy(own)
    own.write_text("base_config: ../qwen3_tts.yaml\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="does not exist"):
        load_deploy(own)


def test_an_end_id_of_other_models_is_left_out():
    frontend = FAMILY.frontend(open_bundle(phone_bundle()))
    with ouzel.load(phone_bundle(), stuck=False, warm_up=False, threads=1) as voice:
        plan = make_plan(SpeechRequest("Hello."), frontend, voice._sampling, None, TextOptions())
    for segment in plan.segments:
        assert frontend.stop_token_id in segment.sampling.stop_token_ids
        assert all(i < frontend.codec_ids for i in segment.sampling.stop_token_ids)
