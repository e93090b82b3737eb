"""A loaded model that speaks: the object of the Python interface."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ouzel.adapters import TalkerSampling
from ouzel.api.placement import Loaded, Place, Placed, moved, place_stages, with_threads
from ouzel.api.plan import Plan, TextOptions, make_plan, make_request
from ouzel.api.reference import References, Samples
from ouzel.audio.gate import Outlook
from ouzel.bundle import Bundle
from ouzel.engine import Engine, Live, Speech, Stages, StuckPolicy, Utterance
from ouzel.errors import UsageError
from ouzel.models.base import Frontend
from ouzel.pipeline import DeployConfig
from ouzel.request import Reference, SpeechRequest, VoiceInfo
from ouzel.schedule import ScheduleSpec

log = logging.getLogger("ouzel.api")
# Two chunk lengths, so that the cost of a decode call and of a frame can be told apart.
_WARM_UP = ScheduleSpec("fixed", chunk_frames=4, initial_frames=1)
_WARM_UP_TOKENS = 6


@dataclass(slots=True)
class Placement:
    """Where a voice's stages run, and what it needs to move them."""

    bundle: Bundle
    config: DeployConfig
    loaded: Loaded


class Voice:
    """Speaks texts with one bundle; made by `ouzel.load`. Safe to use from several threads and tasks at once.

    Options of `stream`, `start`, `say`, `astream` and `asay` are the fields of SpeechRequest: voice, language, instructions,
    seed, greedy, temperature, top_k, top_p, max_new_tokens, initial_codec_chunk_frames, … An unknown one raises UsageError.
    """

    def __init__(
        self,
        engine: Engine,
        frontend: Frontend,
        *,
        name: str = "",
        path: Path | None = None,
        sampling: TalkerSampling | None = None,
        seed: int | None = None,
        text: TextOptions | None = None,
        gate: bool = True,
        placement: Placement | None = None,
        references: References | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.gate = gate  # whether the deploy file wants the first sample held until no gap is foreseen; for `Player(gate=...)`
        self._engine = engine
        self._frontend = frontend
        self._sampling = sampling or TalkerSampling()
        self._seed = seed
        self._text = text or TextOptions()
        self._placement = placement
        self._references = references
        self._placing = threading.Lock()
        weakref.finalize(self, engine.close_soon).atexit = False

    # ---- speak

    def start(self, text: str | SpeechRequest, **options: Any) -> Utterance:
        """Begin to speak and return at once; iterate the utterance for its audio, `cancel` it at any time.

        Raises UsageError when the request cannot be honoured or too many utterances wait, ClosedError after `close`.
        """
        plan = self.plan(text, **options)
        for warning in plan.warnings:
            log.warning("%s", warning)
        return self.speak(plan)

    def plan(self, text: str | SpeechRequest, **options: Any) -> Plan:
        """Check a request and cut its text, without speaking: what `start` does first. Raises UsageError. For servers, which
        tell their clients about `warnings` and must not write texts into a log."""
        return make_plan(make_request(text, options), self._frontend, self._sampling, self._seed, self._text)

    def speak(self, plan: Plan) -> Utterance:
        """Begin to speak a plan of this voice. Raises UsageError when too many utterances wait, ClosedError after `close`."""
        utterance = self._engine.submit(
            plan.segments,
            initial_chunk=plan.request.initial_codec_chunk_frames,
            max_frames=plan.max_frames,
            seed=plan.seed,
        )
        utterance.owner = self  # a voice that nobody else holds must not close under its utterance
        return utterance

    def stream(self, text: str | SpeechRequest, **options: Any) -> Utterance:
        """The audio chunk by chunk while it is made: `for chunk in voice.stream("Hello")`. Leaving the loop early cancels."""
        return self.start(text, **options)

    def say(self, text: str | SpeechRequest, **options: Any) -> Speech:
        """The joined stream. Raises SynthesisError when generation fails."""
        with self.start(text, **options) as utterance:
            return utterance.read()

    def astream(self, text: str | SpeechRequest, **options: Any) -> Utterance:
        """`stream` for asyncio: `async for chunk in voice.astream("Hello")`."""
        return self.start(text, **options)

    async def asay(self, text: str | SpeechRequest, **options: Any) -> Speech:
        """`say` for asyncio; cancelling the task cancels the speech."""
        with self.start(text, **options) as utterance:
            return await utterance.aread()

    # ---- take a voice from a recording

    def reference(self, samples: Samples, text: str | None = None, *, sample_rate: int = 24_000) -> Reference:
        """The voice in a recording, for Base models: `voice.say("Hello.", **voice.reference(samples).options())`.

        samples: float32 (n,), one channel, from -1 to 1, 1 to 30 s long. text: what is said in it; the model then goes on in that
        manner (in-context learning: codec frames besides the speaker vector). sample_rate: Hz, 8,000 to 192,000.
        Takes seconds of a processor, one recording at a time; what was made of the latest recordings is kept. Raises UsageError
        for a recording or a model that does not fit, BundleError for a bundle without the encoders; their `param` is ref_audio or
        ref_text.
        """
        return self._readers().read(samples, text, sample_rate)

    def check_reference(self, text: str | None = None) -> None:
        """What `reference` would raise whatever the recording."""
        self._readers().check(text)

    def _readers(self) -> References:
        if self._references is None:
            raise UsageError(
                "This voice was not made by ouzel.load, so there is no bundle whose encoders could read a recording.",
                param="ref_audio",
            )
        return self._references

    # ---- know

    @property
    def task(self) -> str:
        """ "CustomVoice", "VoiceDesign" or "Base"."""
        return self._frontend.task

    @property
    def voices(self) -> Sequence[VoiceInfo]:
        """The voices that the bundle offers; the first is the default."""
        return self._frontend.voices

    @property
    def languages(self) -> Sequence[str]:
        return self._frontend.languages

    @property
    def speeds(self) -> tuple[float, float]:
        """Least and greatest `speed` of a request; (1, 1) with models that set their own pace."""
        return self._frontend.speeds

    @property
    def sample_rate(self) -> int:
        """Hz, from the decoder."""
        return self._engine.sample_rate

    @property
    def engine(self) -> Engine:
        return self._engine

    def outlook(self) -> Outlook | None:
        """What a playback gate may expect of speech that begins now; see `ouzel.audio.player.Player.play`."""
        return self._engine.outlook()

    def live(self) -> Live:
        """What is being spoken; `live().empty` once nothing is."""
        return self._engine.live()

    # ---- where the stages run

    @property
    def placement(self) -> Mapping[str, Placed]:
        """Stage -> where the next utterance's really runs: "talker", "predictor", "decoder"; empty for a voice made by hand."""
        return self._placement.loaded.placed if self._placement is not None else {}

    def place(
        self,
        *,
        talker: Place = None,
        predictor: Place = None,
        decoder: Place = None,
        threads: int | None = None,
        fallback: bool = False,
        warm_up: bool = True,
    ) -> Mapping[str, Placed]:
        """Move stages to other runtimes, devices, threads or weights; arguments as in `ouzel.load`. Returns the new `placement`.

        What is loaded is loaded here and now, while everything else goes on. Utterances that have begun end where they began, the
        next ones begin at the new place, and with the last of the old ones their stages are freed; stages that stay are shared.
        On an error nothing has moved. warm_up: as for `ouzel.load`; it waits for its turn among the utterances.
        Raises what `ouzel.load` raises about placement; ClosedError after `close`.
        """
        with self._placing:
            here = self._placement
            if here is None:
                raise UsageError("This voice was not made by ouzel.load, so there is no bundle to load its stages from again.")
            places = {"talker": talker, "predictor": predictor, "decoder": decoder}
            config = moved(with_threads(here.config, threads), places)
            loaded = place_stages(here.bundle, config, fallback=fallback, keep=here.loaded)
            if loaded.talker is not here.loaded.talker or loaded.decoder is not here.loaded.decoder:
                stages = Stages(loaded.talker, loaded.decoder)
                if warm_up:
                    self.warm_up(stages)
                self._engine.replace(stages)
            self._placement = Placement(here.bundle, config, loaded)
            return loaded.placed

    # ---- begin and end

    def warm_up(self, stages: Stages | None = None) -> None:
        """Speak five frames to nobody: fills the runtime's buffers and gives `auto` a first idea of the speed.

        Later samples do not depend on it. Bundles that need reference audio are left cold. stages: instead of the engine's.
        """
        text = "Warm up."
        request = make_request(text, {"seed": 0, "max_new_tokens": _WARM_UP_TOKENS})
        try:
            plan = make_plan(request, self._frontend, self._sampling, 0, self._text)
        except UsageError as exc:
            log.debug("no warm-up: %s", exc)
            return
        self._engine.submit(plan.segments, schedule=_WARM_UP, stuck=StuckPolicy(enabled=False), stages=stages).read()

    def close(self) -> None:
        """End everything that is being spoken and free the model's threads. Idempotent."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
