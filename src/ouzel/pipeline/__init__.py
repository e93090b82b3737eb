"""Topology of a model and the deploy files that run it: vLLM-Omni's YAML, read on a device."""

from ouzel.pipeline.connector import CodecConnector, ConnectorSpec
from ouzel.pipeline.deploy import DeployConfig
from ouzel.pipeline.edge import EdgeOptions, Playback
from ouzel.pipeline.loader import load_deploy
from ouzel.pipeline.overrides import Overrides, parse_overrides
from ouzel.pipeline.registry import get_pipeline, pipelines, register_pipeline, resolve_pipeline, unregister_pipeline
from ouzel.pipeline.stage import StageDeploy
from ouzel.pipeline.topology import ExecutionType, PipelineConfig, StageConfig, resolve_processor

__all__ = [
    "CodecConnector",
    "ConnectorSpec",
    "DeployConfig",
    "EdgeOptions",
    "ExecutionType",
    "Overrides",
    "PipelineConfig",
    "Playback",
    "StageConfig",
    "StageDeploy",
    "get_pipeline",
    "load_deploy",
    "parse_overrides",
    "pipelines",
    "register_pipeline",
    "resolve_pipeline",
    "resolve_processor",
    "unregister_pipeline",
]
