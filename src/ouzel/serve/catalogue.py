"""What the server has and how it is: voices, models, health, metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ouzel.serve.desk import Desk
from ouzel.serve.voicing import OPENAI_VOICES, openai_voice


def catalogue(desk: Desk) -> APIRouter:
    """The routes that speak nothing."""
    router = APIRouter()
    settings = desk.settings

    @router.get("/health")
    async def health() -> Response:
        """The process is alive."""
        return JSONResponse({"status": "ok"})

    @router.get("/ready", responses={503: {"description": "loading, or stopping"}})
    async def ready() -> Response:
        """It takes requests: the voice is loaded, and it is not stopping."""
        status = "ready" if desk.ready else "stopping" if desk.draining else "loading"
        return JSONResponse({"status": status}, 200 if desk.ready else 503)

    @router.get("/metrics")
    async def metrics() -> Response:
        text = desk.metrics.render(desk.model, desk.live())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get("/v1/models")
    async def models() -> dict[str, Any]:
        names = (desk.voice.name, *settings.served_names)
        return {"object": "list", "data": [{"id": n, "object": "model", "created": 0, "owned_by": "ouzel"} for n in names]}

    @router.get("/v1/audio/models")
    async def audio_models() -> dict[str, Any]:
        """What a client may want to know before it asks for speech. speeds: least and greatest of a stream."""
        voice = desk.voice
        facts = {
            "task_type": voice.task,
            "sample_rate": voice.sample_rate,
            "speeds": (1.0, 1.0) if settings.vllm else voice.speeds,
        }
        return {"models": [{"id": name, **facts} for name in (voice.name, *settings.served_names)]}

    @router.get("/v1/audio/voices")
    async def voices() -> dict[str, Any]:
        """openai: objects with id and name, aliases with the voice behind them. vllm-omni: sorted names with "default"."""
        own = desk.voice.voices
        if settings.vllm:
            return {"voices": sorted({*(v.name for v in own), *settings.voice_aliases, "default"}), "uploaded_voices": []}
        found: list[dict[str, Any]] = [
            {"id": v.name, "name": v.name, "language": v.language, "description": v.description} for v in own
        ]
        taken = {v.name.lower() for v in own}
        behind = {**settings.voice_aliases, **{n: openai_voice(n, own) for n in OPENAI_VOICES if n not in settings.voice_aliases}}
        for alias, target in behind.items():
            if target is not None and alias.lower() not in taken:
                found.append({"id": alias, "name": f"{alias} ({target})", "voice": target})
        return {"voices": found, "languages": list(desk.voice.languages)}

    return router
