"""What went wrong, as the JSON body that the clients know (contract 8.3)."""

from __future__ import annotations

from typing import Any

from ouzel.errors import ClosedError, OuzelError, UsageError

_TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    408: "RequestTimeoutError",
    413: "PayloadTooLargeError",
    415: "UnsupportedMediaTypeError",
    429: "RateLimitError",
    503: "ServiceUnavailableError",
}
_FIELDS = {"text": "input", "greedy": "extra_params"}  # where a request's field has another name on the wire
FAILED = "The speech could not be made: an error inside the server. Its log has the details."


class ApiError(Exception):
    """An answer instead of audio. message: for the client. param: the field it is about. retry_after_s: with 429 and 503."""

    def __init__(self, status: int, message: str, *, param: str | None = None, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    @property
    def error(self) -> dict[str, Any]:
        kind = _TYPES.get(self.status, "InternalServerError")
        return {"message": self.message, "type": kind, "param": self.param, "code": self.status}

    @property
    def body(self) -> dict[str, Any]:
        return {"error": self.error}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}


def api_error_of(error: BaseException) -> ApiError:
    """The answer for whatever ended a request; what is no error of ours says nothing about itself to the client."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ClosedError):
        return ApiError(503, str(error), retry_after_s=5)
    if isinstance(error, UsageError):
        return ApiError(400, str(error), param=_FIELDS.get(error.param or "", error.param))
    return ApiError(500, str(error) if isinstance(error, OuzelError) else FAILED)
