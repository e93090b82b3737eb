"""POST /v1/audio/speech/batch: several texts, one answer (contract 8.5)."""

from __future__ import annotations

import base64
import uuid
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ouzel.audio.encoder import FORMATS, open_encoder
from ouzel.serve.api_error import ApiError, api_error_of
from ouzel.serve.client import LiveResponse
from ouzel.serve.desk import Desk
from ouzel.serve.likeness import Likeness
from ouzel.serve.reading import order_of
from ouzel.serve.schema import BatchBody, BatchItem

ROUTE = "batch"
_BATCH_ONLY = {"items"}


class BatchResponse(LiveResponse):
    """Speaks the items one after another, as one client; an item that fails does not touch the others."""

    def __init__(self, desk: Desk, body: BatchBody) -> None:
        super().__init__()
        self._desk = desk
        self._batch = body
        self._likeness: Likeness | None = None  # of the latest item

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        results = [await self._item(index, item) for index, item in enumerate(self._batch.items)]
        good = sum(result["status"] == "success" for result in results)
        answer = {
            "id": f"speech-batch-{uuid.uuid4().hex}",
            "results": results,
            "total": len(results),
            "succeeded": good,
            "failed": len(results) - good,
        }
        await JSONResponse(answer)(scope, receive, send)

    async def _item(self, index: int, item: BatchItem) -> dict[str, Any]:
        desk = self._desk
        try:
            shared = self._batch.model_dump(exclude=_BATCH_ONLY, exclude_unset=True)
            merged = BatchItem.model_validate(shared | item.model_dump(exclude_unset=True))
            order = order_of(merged.input, merged, desk.settings, desk.model, route=ROUTE, default_format="wav")
            order.delivery = "whole"
            if order.likeness is not None:
                order.likeness = self._likeness = order.likeness.remembered(self._likeness)
            async with desk.take(order) as take:
                with open_encoder(order.format, take.sample_rate, streamed=False) as encoder:
                    audio = encoder.header() + b"".join([encoder.encode(block) async for block in take]) + encoder.finish()
                    usage = take.usage
        except Exception as error:
            return {"index": index, "status": "error", "error": api_error_of(error).message}
        return {
            "index": index,
            "status": "success",
            "audio_data": base64.b64encode(audio).decode(),
            "media_type": FORMATS[order.format].media_type,
            "usage": usage,
        }


def check_batch(body: BatchBody, limit: int) -> None:
    """Raises ApiError 400 for a batch that is empty or too large."""
    if not 1 <= len(body.items) <= limit:
        raise ApiError(400, f"A batch has from 1 to {limit} items, not {len(body.items)}.", param="items")
