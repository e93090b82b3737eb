"""A loaded deploy file as a value (contract 1); `ouzel.pipeline.loader` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ouzel.adapters import TalkerSampling
from ouzel.errors import ConfigError, choose
from ouzel.pipeline.connector import CodecConnector, ConnectorSpec
from ouzel.pipeline.edge import Playback
from ouzel.pipeline.sampling import talker_sampling
from ouzel.pipeline.stage import StageDeploy
from ouzel.pipeline.topology import PipelineConfig


@dataclass(frozen=True)
class DeployConfig:
    """What one deployment says. `stages` has one entry per stage of the pipeline, in its order.

    connectors: by edge (producer id, consumer id); codecs: their chunking parameters. ignored: unused top-level keys.
    """

    path: Path
    pipeline: PipelineConfig
    async_chunk: bool
    stages: tuple[StageDeploy, ...]
    connectors: Mapping[tuple[int, int], ConnectorSpec] = field(default_factory=dict)
    codecs: Mapping[tuple[int, int], CodecConnector] = field(default_factory=dict)
    playback: Playback = field(default_factory=Playback)
    model_runner: str = "v1"
    ignored: Mapping[str, Any] = field(default_factory=dict)

    def stage(self, stage_id: int) -> StageDeploy:
        """The deploy values of a stage. Raises ConfigError naming the ids there are."""
        for stage in self.stages:
            if stage.stage_id == stage_id:
                return stage
        raise choose("stage", stage_id, self.pipeline.stage_ids, error=ConfigError)

    def codec_connector(self, producer: int = 0, consumer: int = 1) -> CodecConnector:
        """Chunking parameters of an edge; the server's code defaults where the file has no connector for it."""
        found = self.codecs.get((producer, consumer))
        if found is None:
            raise choose("edge", (producer, consumer), self.pipeline.edges, error=ConfigError)
        return found

    @property
    def schedule(self) -> str:
        """Kind of chunk schedule, one of `ouzel.pipeline.edge.SCHEDULES`.

        `playback.schedule` where it is set, else what the connector says; without async_chunk it is always "full".
        """
        if not self.async_chunk:
            return "full"
        if self.playback.schedule is not None:
            return self.playback.schedule
        return next(iter(self.codecs.values())).schedule if self.codecs else "fixed"

    def talker_sampling(self, stage_id: int = 0) -> TalkerSampling:
        """Sampling of the talker stage, constraints and sub-talker included."""
        stage = self.stage(stage_id)
        return talker_sampling(str(self.path), stage.sampling, stage.subtalker_sampling)
