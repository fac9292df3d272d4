"""What is refused, in the words of RabbitMQ's API."""

from __future__ import annotations

from fastapi import HTTPException, Request, Response
from fastapi.responses import JSONResponse


def not_found(reason: str = "Not Found") -> HTTPException:
    """Return the answer about a thing that is not there."""
    return HTTPException(404, {"error": "Object Not Found", "reason": reason})


def bad_request(reason: str) -> HTTPException:
    """Return the answer to a question that cannot be answered, or a change that cannot be made."""
    return HTTPException(400, {"error": "bad_request", "reason": reason})


async def answer_failure(request: Request, failure: Exception) -> Response:
    """Answer with what a failure says: its object as it is, text as `detail`."""
    del request
    assert isinstance(failure, HTTPException)
    detail: object = failure.detail
    body = detail if isinstance(detail, dict) else {"detail": detail}
    return JSONResponse(body, failure.status_code, failure.headers)
