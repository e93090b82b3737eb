"""What the log says about a request: one line, as words or as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

FIELDS = "fields"  # of a log record: the line's values by name


def words(fields: Mapping[str, object]) -> str:
    """ "id=req-1 route=speech …"; None is left out, text of a client is quoted."""
    return " ".join(
        f"{name}={value!r}" if name == "text" else f"{name}={value}" for name, value in fields.items() if value is not None
    )


class JsonFormatter(logging.Formatter):
    """One JSON object a record: time (UTC), level, message, the fields of a request, what was raised."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, None)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage() if fields is None else "request",
        }
        line |= fields or {}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)
