"""The decoder thread: lots of frames to samples, checked, faded in at the start, and put into the ring."""

from __future__ import annotations

import numpy as np

from ouzel.audio.pcm import AudioChunk, Samples, fade_in
from ouzel.engine.registry import Registry
from ouzel.engine.stuck import SilenceDetector
from ouzel.engine.talking import as_synthesis_error
from ouzel.engine.work import DecodeJob, Work
from ouzel.errors import SynthesisError


class Decoding:
    """`turn` is called by one thread only."""

    def __init__(self, registry: Registry, sample_rate: int, samples_per_frame: int) -> None:
        self._registry = registry
        self._rate = sample_rate
        self._per_frame = samples_per_frame
        self._fade = round(registry.options.fade_in_s * sample_rate)

    def turn(self) -> bool:
        """Do one lot of frames; False when there is none."""
        registry = self._registry
        with registry.lock:
            registry.sweep()
            turn = registry.decoder_turn()
        if turn is None:
            return False
        work, job = turn
        try:
            self._decode(work, job)
        except Exception as exc:
            with registry.lock:
                if work.generation == job.generation:
                    work.close("error", as_synthesis_error("decoder", exc))
        finally:
            with registry.lock:
                work.in_decoder = False
                registry.progress += 1
                registry.sweep()
            registry.talker_signal.set()
        work.tell()
        return True

    def _decode(self, work: Work, job: DecodeJob) -> None:
        skipped = not job.codes or work.cut_segment == job.segment
        samples = np.zeros(0, dtype=np.float32)
        frames = 0 if skipped else len(job.codes)
        stuck = False
        if not skipped:
            samples = self._samples(work, job)
            silence = work.silence
            keep = silence.push(samples) if silence is not None else None
            if keep is not None:
                stuck, frames = True, keep
                samples = samples[: keep * self._per_frame]
        with self._registry.lock:
            if work.generation != job.generation:
                return
            if work.silence is not None:
                work.loudest = max(work.loudest, work.silence.loudest)
            work.samples += len(samples)
            work.seconds += len(samples) / self._rate
            work.backlog -= len(job.codes)
            work.kept += frames
            if stuck:
                work.worsen("stuck")
                work.cut_segment = job.segment
                work.recorder.cut(len(job.codes) - frames)
            final = job.last and self._settle(work, job.segment)
            if final:
                self._refuse_silence(work)
            if frames or final:
                self._emit(work, samples, frames, final)
            if final:
                work.close()

    def _settle(self, work: Work, segment: int) -> bool:
        """The last lot of a segment was decoded; whether nothing follows it. Frames that were cut do not count as spoken."""
        work.decoder_state = None
        work.silence = None
        work.settled = segment + 1
        if work.max_frames is None:
            return work.settled == len(work.segments)
        work.total = work.kept  # the talker waits for this before the next segment
        return work.settled == len(work.segments) or work.total >= work.max_frames

    def _samples(self, work: Work, job: DecodeJob) -> Samples:
        """Decode a lot with frames, starting the segment's state if it is the first; float32 (n * samples_per_frame,)."""
        stages = work.stages
        if stages is None:  # cancelled since the turn was given out
            return np.zeros(0, dtype=np.float32)
        decoder = stages.decoder
        if work.decoding != job.segment:
            state = decoder.start(work.segments[job.segment].reference_codes)
            quiet = work.stuck
            silence = (
                SilenceDetector(round(quiet.silence_seconds / self._registry.frame_seconds), self._per_frame, quiet.silence_rms)
                if quiet.enabled
                else None
            )
            with self._registry.lock:
                if work.generation != job.generation:
                    return np.zeros(0, dtype=np.float32)
                work.decoder_state, work.silence, work.decoding = state, silence, job.segment
                work.decoded = work.samples = 0
        if job.first != work.decoded:
            raise SynthesisError(f"Frame {job.first} reached the decoder where {work.decoded} was due: frames were lost.")
        state = work.decoder_state
        if state is None:  # likewise
            return np.zeros(0, dtype=np.float32)
        began = self._registry.clock()
        samples = decoder.decode(state, job.stacked(), last=job.last)
        stages.speed.add_decode(len(job.codes), (self._registry.clock() - began) * 1000.0)
        work.decoded += len(job.codes)
        due = len(job.codes) * self._per_frame
        if samples.shape != (due,):
            raise SynthesisError(f"The decoder returned samples of shape {samples.shape}; ({due},) was due.")
        if not np.isfinite(samples).all():
            raise SynthesisError(
                f"The decoder produced non-finite samples in frames {job.first} to {work.decoded - 1}; they were not played. "
                "Choose a higher precision for the decoder."
            )
        return fade_in(np.array(samples, dtype=np.float32), work.samples, self._fade)

    def _refuse_silence(self, work: Work) -> None:
        """Silence from end to end is a failure and must not look like a success."""
        policy = work.stuck
        if policy.enabled and work.seconds >= policy.silent_result_seconds and work.loudest < policy.silence_rms:
            raise SynthesisError(
                f"All {work.seconds:.1f} s of audio are near-silent (below {policy.silence_dbfs:g} dBFS). "
                "Try another seed or voice, or a higher precision for the decoder."
            )

    def _emit(self, work: Work, samples: Samples, frames: int, final: bool) -> None:
        chunk = AudioChunk(samples, self._rate, work.chunks, final, frames)
        work.chunks += 1
        work.ring.push(chunk)
        work.recorder.chunk(chunk)
        work.ready.notify_all()
