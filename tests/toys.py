"""A talker and a decoder that keep the real protocols and cost nothing: deterministic, stateful, and breakable on purpose.

The talker's codes depend on its prompt rows, the seed and the frame number only. The decoder carries state between frames, so
a frame that is lost, doubled or given to the wrong utterance changes every sample after it. Hooks run inside the calls: a test
blocks, fails or cancels there, at an exact point, without a clock.
"""

import dataclasses
import hashlib
import threading
import weakref
from collections.abc import Callable

import numpy as np

from ouzel.adapters import Frame, PromptRows, TalkerSampling
from ouzel.engine import Segment
from ouzel.errors import UsageError, choose
from ouzel.request import SpeechRequest, VoiceInfo

GROUPS = 4
HIDDEN = 8
RATE = 2400
SPF = 192  # 80 ms, as the real codec has


def digest(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def rows_of(text: str, tokens: int | None = None) -> PromptRows:
    """Prompt rows that only depend on the text."""
    rng = np.random.default_rng(digest(text))
    n = max(1, len(text.split()))
    return PromptRows(
        prefill=rng.standard_normal((3, HIDDEN)).astype(np.float32),
        trailing=rng.standard_normal((n, HIDDEN)).astype(np.float32),
        pad=np.zeros(HIDDEN, np.float32),
        text_tokens=n if tokens is None else tokens,
    )


def segment(text: str, *, seed: int = 0, max_tokens: int = 4096, ref: np.ndarray | None = None) -> Segment:
    return Segment(lambda: rows_of(text), TalkerSampling(seed=seed, max_tokens=max_tokens), ref)


class ToyState:
    """Weakly referable, so that a test can count what is alive."""

    def __init__(self, key: int, length: int, limit: int) -> None:
        self.key = key
        self.length = length
        self.limit = limit
        self.frame = 0


class ToyTalker:
    """frames: length of every segment; None derives 3 to 40 from the prompt; a huge number never ends by itself.

    code0: overrides codebook 0 with f(frame). on_prefill() and on_step(frame) are called inside the calls.
    """

    groups = GROUPS

    def __init__(
        self,
        frames: int | None = None,
        *,
        code0: Callable[[int], int] | None = None,
        on_prefill: Callable[[], None] | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self.frames = frames
        self.code0 = code0
        self.on_prefill = on_prefill
        self.on_step = on_step
        self.states: weakref.WeakSet[ToyState] = weakref.WeakSet()
        self.steps = 0
        self.batches: list[int] = []

    def prefill(self, rows: PromptRows, sampling: TalkerSampling) -> ToyState:
        if self.on_prefill:
            self.on_prefill()
        key = digest(rows.prefill.tobytes(), rows.trailing.tobytes(), sampling.seed)
        state = ToyState(key, 3 + key % 38 if self.frames is None else self.frames, sampling.max_tokens - 1)
        self.states.add(state)
        return state

    def step(self, states) -> list[Frame]:
        self.batches.append(len(states))
        return [self._one(state) for state in states]

    def _one(self, state: ToyState) -> Frame:
        self.steps += 1
        if self.on_step:
            self.on_step(state.frame)
        if state.frame >= state.length:
            return Frame(None, "stop")
        if state.frame >= state.limit:
            return Frame(None, "length")
        bits = digest(state.key, state.frame)
        codes = np.array([1 + (bits >> (12 * g)) % 2000 for g in range(GROUPS)], dtype=np.int64)
        if self.code0:
            codes[0] = self.code0(state.frame)
        state.frame += 1
        return Frame(codes)


class ToyDecoderState:
    def __init__(self) -> None:
        self.carry = 0.0


class ToyDecoder:
    """Each frame is a tone of its codes plus a tail of everything before.

    silent_from: the frame of a segment from which it is silent. poison_at: the frame of a segment with a NaN in it.
    on_decode(frames) is called inside the call.
    """

    sample_rate = RATE
    samples_per_frame = SPF
    left_context_frames = 0

    def __init__(
        self, *, silent: bool = False, silent_from: int | None = None, poison_at: int | None = None, on_decode=None
    ) -> None:
        self.silent_from = 0 if silent else silent_from
        self.poison_at = poison_at
        self.on_decode = on_decode
        self.states: weakref.WeakSet[ToyDecoderState] = weakref.WeakSet()
        self.calls = 0
        self.frames = 0
        self._counts: weakref.WeakKeyDictionary[ToyDecoderState, int] = weakref.WeakKeyDictionary()

    def start(self, reference_codes=None) -> ToyDecoderState:
        state = ToyDecoderState()
        self.states.add(state)
        self._counts[state] = 0
        if reference_codes is not None:
            for codes in reference_codes:
                self._frame(state, codes)
        self._counts[state] = 0
        return state

    def decode(self, state: ToyDecoderState, codes, *, last: bool = False):
        if self.on_decode:
            self.on_decode(len(codes))
        if not len(codes):
            raise UsageError("no frames")
        self.calls += 1
        self.frames += len(codes)
        return np.concatenate([self._frame(state, row) for row in codes])

    def _frame(self, state: ToyDecoderState, codes) -> np.ndarray:
        count = self._counts[state]
        self._counts[state] = count + 1
        value = (digest(tuple(int(c) for c in codes)) % 1000) / 1000.0
        state.carry = 0.5 * state.carry + 0.5 * value
        t = np.arange(SPF, dtype=np.float64)
        samples = ((0.1 + 0.4 * state.carry) * np.cos(t * (0.05 + value))).astype(np.float32)
        if self.silent_from is not None and count >= self.silent_from:
            samples = samples * np.float32(1e-5)
        if self.poison_at is not None and count == self.poison_at:
            samples[SPF // 2] = np.nan
        return samples


class Barrier:
    """A hook that stops a worker at its n-th call until the test says go."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.calls = 0
        self.reached = threading.Event()
        self.go = threading.Event()

    def __call__(self, *_: object) -> None:
        if self.calls == self.at:
            self.reached.set()
            if not self.go.wait(30):
                raise RuntimeError("the test forgot to let the worker go")
        self.calls += 1


class Failing:
    """A hook that raises at its n-th call, once."""

    def __init__(self, at: int = 0, error: Exception | None = None) -> None:
        self.at = at
        self.calls = 0
        self.error = error or RuntimeError("the runtime broke down")

    def __call__(self, *_: object) -> None:
        self.calls += 1
        if self.calls == self.at + 1:
            raise self.error


def reference_audio(text: str, *, seed: int = 0, talker: ToyTalker | None = None, limit: int = 10_000) -> np.ndarray:
    """What an utterance must sound like, without an engine: step to the end, decode in one call."""
    talker = talker or ToyTalker()
    state = talker.prefill(rows_of(text), TalkerSampling(seed=seed, max_tokens=limit))
    rows = []
    while (frame := talker.step([state])[0]).codes is not None:
        rows.append(frame.codes)
    decoder = ToyDecoder()
    return decoder.decode(decoder.start(), np.stack(rows), last=True)


class ToyFrontend:
    """One voice, one language; a token is a word."""

    task = "CustomVoice"
    voices = (VoiceInfo("toy", description="a toy"),)
    languages = ("auto",)
    speeds = (1.0, 1.0)
    hidden_size = HIDDEN
    groups = GROUPS
    sample_rate = RATE
    stop_token_id = 2150

    def __init__(self) -> None:
        self.requests: list[SpeechRequest] = []

    segment_tokens = 160
    codec_ids = 2200

    def count_tokens(self, text: str, request: SpeechRequest | None = None) -> int:
        return len(text.split())

    def frame_budget(self, text_tokens: int, configured: int, requested: int | None = None) -> int:
        return min(configured, requested or max(40, 12 * text_tokens))

    def review(self, text: str) -> tuple[str, ...]:
        return ()

    def resolve(self, request: SpeechRequest) -> SpeechRequest:
        if request.voice not in (None, "toy"):
            raise choose("voice", request.voice, ["toy"])
        self.requests.append(request)
        return dataclasses.replace(request, voice="toy")

    def rows(self, request: SpeechRequest, text: str) -> PromptRows:
        return rows_of(text)
