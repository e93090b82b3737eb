"""What `ouzel say` does: one request, its chunks to a file, a pipe, the loudspeaker, or two of them."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.api import TextOptions, load
from ouzel.api.plan import make_request
from ouzel.audio.pcm import AudioChunk
from ouzel.audio.player import Player
from ouzel.audio.recording import check_recording, read_recording
from ouzel.cli.deploy import overrides
from ouzel.cli.output import Output, check_output, open_output
from ouzel.cli.stats import print_stats
from ouzel.engine import Utterance
from ouzel.errors import UsageError
from ouzel.request import SpeechRequest
from ouzel.text import prepare

log = logging.getLogger("ouzel.cli")
_JUDGE_AFTER_S = 1.0  # audio at hand before the speed is judged


def speak(args: argparse.Namespace) -> int:
    """Run `ouzel say`. What can be wrong with the arguments is found before the model is loaded."""
    recording = _recording(args)
    request = make_request(_request(args, read_text(args.text)), {})
    prepare(request.text, strip=not args.no_strip)
    play = args.play or args.output is None
    format_name = None if args.output is None else check_output(args.output, args.format)
    if play and not _can_play():
        raise UsageError(
            "There is nothing to play the speech with: give -o FILE to write it, or install a player: pip install 'ouzel[play]'."
        )
    voice = load(
        args.model,
        deploy=args.deploy_config,
        schedule=args.schedule,
        threads=args.threads,
        talker=args.talker,
        predictor=args.predictor,
        decoder=args.decoder,
        fallback=args.fallback,
        overrides=overrides(args),
        text=TextOptions(strip=not args.no_strip),
        stuck=args.stuck_detector,
    )
    with voice, ExitStack() as stack:
        if recording is not None:
            samples, rate = recording
            request = replace(request, **voice.reference(samples, args.ref_text, sample_rate=rate).options())
        utterance = stack.enter_context(voice.start(request))
        chunks: Iterable[AudioChunk] = utterance
        if format_name is not None:
            chunks = _also_write(chunks, stack.enter_context(open_output(args.output, format_name, voice.sample_rate)))
        if play:
            player = stack.enter_context(Player(gate=voice.gate))
            player.play(_warn_if_slow(chunks, utterance), outlook=voice.outlook)
        else:
            for _ in chunks:
                pass
    _tell_the_end(utterance)
    if args.stats is not None:
        print_stats(utterance, voice.name, as_json=args.stats == "json")
    return 0


def read_text(words: list[str]) -> str:
    """The words joined, or standard input for a single dash. Raises UsageError for what cannot be read as UTF-8."""
    if words != ["-"]:
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise UsageError(f"The text on standard input is not UTF-8 (see byte {err.start}); convert it first.") from None
    except OSError as err:
        raise UsageError(f"Standard input cannot be read ({err.strerror or err}); give the text as an argument.") from None


def _request(args: argparse.Namespace, text: str) -> SpeechRequest:
    return SpeechRequest(
        text=text,
        voice=args.voice,
        language=args.language,
        instructions=args.instruct,
        speed=args.speed,
        task_type=args.task_type,
        speaker_embedding=_array("--speaker-embedding", args.speaker_embedding),
        ref_codes=_array("--ref-codes", args.ref_codes),
        ref_text=args.ref_text if args.ref_audio is None else None,
        non_streaming_mode=args.non_streaming_mode,
        seed=args.seed,
        greedy=args.greedy,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        max_new_tokens=args.max_new_tokens,
        initial_codec_chunk_frames=args.initial_codec_chunk_frames,
    )


def _recording(args: argparse.Namespace) -> tuple[NDArray[np.float32], int] | None:
    """(samples, sample rate) of --ref-audio. Raises UsageError when no voice can be taken from it."""
    if args.ref_audio is None:
        return None
    for option in ("speaker_embedding", "ref_codes"):
        if getattr(args, option) is not None:
            raise UsageError(f"--ref-audio and --{option.replace('_', '-')} both say whose voice it is; give one of them.")
    samples, rate = read_recording(args.ref_audio)
    return check_recording(samples, rate), rate


def _array(option: str, path: str | None) -> NDArray[Any] | None:
    """The numbers in a .npy file; the model's front end checks what they are. Raises UsageError."""
    if path is None:
        return None
    try:
        loaded: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as err:
        reason = err.strerror if isinstance(err, OSError) and err.strerror else "it is not a .npy file of numbers"
        raise UsageError(f"{option} {path} cannot be read: {reason}.") from None
    if not isinstance(loaded, np.ndarray):
        raise UsageError(f"{option} {path} holds several arrays; give a .npy file of one.")
    if loaded.dtype.kind not in "iuf":
        raise UsageError(f"{option} {path} must hold numbers, found {loaded.dtype}.")
    return loaded


def _can_play() -> bool:
    return importlib.util.find_spec("sounddevice") is not None or any(map(shutil.which, ("aplay", "ffplay")))


def _also_write(chunks: Iterable[AudioChunk], output: Output) -> Iterator[AudioChunk]:
    for chunk in chunks:
        if len(chunk.samples):
            output.write(chunk.samples)
        yield chunk


def _warn_if_slow(chunks: Iterable[AudioChunk], utterance: Utterance) -> Iterator[AudioChunk]:
    warned = False
    for chunk in chunks:
        yield chunk
        if not warned and not chunk.is_last:
            so_far = utterance.metrics
            if so_far.audio_s >= _JUDGE_AFTER_S and so_far.rtf > 1.0:
                log.warning(
                    "this machine needs %.1f s for each second of speech, so playback waits until it can go on without gaps; "
                    "-o FILE does not wait, and `ouzel doctor` shows where the time goes",
                    so_far.rtf,
                )
                warned = True


def _tell_the_end(utterance: Utterance) -> None:
    if utterance.finish_reason == "length":
        log.warning("the speech was cut off at the limit of frames; a longer one needs a larger --max-new-tokens")
    elif utterance.finish_reason == "stuck":
        log.warning("the model went on without saying anything and was stopped; another --seed may do better")
