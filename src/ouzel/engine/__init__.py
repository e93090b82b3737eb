"""The engine: utterances in, audio chunks out."""

from ouzel.engine.engine import Engine
from ouzel.engine.options import EngineOptions
from ouzel.engine.registry import Live
from ouzel.engine.segment import Segment, segment_seed
from ouzel.engine.speech import Speech
from ouzel.engine.stages import Stages
from ouzel.engine.stuck import StuckPolicy
from ouzel.engine.utterance import Utterance

__all__ = ["Engine", "EngineOptions", "Live", "Segment", "Speech", "Stages", "StuckPolicy", "Utterance", "segment_seed"]
