"""Requests that are not served, and why: what every dialect turns into its own error.

What a model's server said stays here: its address and its words go to the log, never to a client.
"""

from dataclasses import dataclass

from antiphon.errors import (
    AntiphonError,
    ContextLengthError,
    DataError,
    ModelError,
    ModelNotFoundError,
    RateLimitError,
    RenderError,
    RunError,
    UnknownNameError,
    UsageError,
)


@dataclass
class Refusal(Exception):
    """A request that is not served."""

    status: int
    """The HTTP status."""
    message: str
    """What the client reads."""
    code: str = ""
    """A word for programs, as OpenAI spells it; empty where there is none."""
    param: str = ""
    """The field at fault, where it is one."""
    retry_after: float | None = None
    """Seconds to wait before asking again."""

    def __str__(self) -> str:
        return self.message

    @property
    def kind(self) -> str:
        """OpenAI's word for its sort."""
        other = "server_error" if self.status >= 500 else "invalid_request_error"
        return _KINDS.get(self.status, other)

    @property
    def anthropic_kind(self) -> str:
        """Anthropic's word for its sort."""
        known = _ANTHROPIC_KINDS.get(self.status)
        return known or ("api_error" if self.status >= 500 else "invalid_request_error")


_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_ANTHROPIC_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    501: "invalid_request_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def bad(message: str, param: str = "", *, code: str = "") -> Refusal:
    """A request that cannot be meant as it is written."""
    return Refusal(400, message, code, param)


def refusal_of(error: AntiphonError) -> Refusal:
    """What a client is told of an error of ours.

    Errors of the request are told as they are; of a model that gave no answer, only that it did.
    """
    match error:
        case ContextLengthError():
            return Refusal(
                400,
                "the conversation is longer than the model's context; shorten it",
                "context_length_exceeded",
                "messages",
            )
        case RateLimitError(retry_after=wait):
            return Refusal(
                429,
                "the model behind this server asks to wait; ask again later",
                "rate_limit_exceeded",
                retry_after=1.0 if wait is None else wait,
            )
        case ModelNotFoundError():
            return Refusal(502, "the model behind this server is not there", "model_not_available")
        case ModelError():
            return Refusal(502, "the model behind this server gave no answer", "upstream_error")
        case UnknownNameError() | RenderError() | UsageError() | DataError():
            return bad(str(error))
        case RunError():
            return Refusal(409, str(error), "conflict")
        case _:
            return Refusal(500, "the server failed", "internal_error")
