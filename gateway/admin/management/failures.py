"""What is refused, in the words of RabbitMQ's API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from gateway.plain_errors import tell_wrong

API = "/api/"
CHANGED: dict[int | str, dict[str, Any]] = {204: {"description": "It was there, and is as it is asked for now."}}


def not_found(reason: str = "Not Found") -> HTTPException:
    """Return the answer about a thing that is not there."""
    return HTTPException(404, {"error": "Object Not Found", "reason": reason})


def bad_request(reason: str) -> HTTPException:
    """Return the answer to a question that cannot be answered, or a change that cannot be made."""
    return HTTPException(400, {"error": "bad_request", "reason": reason})


def out_of_range(page: int, page_size: int, count: int) -> HTTPException:
    """Return the answer to a question for a page that begins behind the end of its list."""
    reason = f"page out of range: page {page} of {page_size} in a list of {count}"
    return HTTPException(400, {"error": "page_out_of_range", "reason": reason})


def busy(reason: str) -> HTTPException:
    """Return the answer to what cannot be done now."""
    return HTTPException(503, {"error": "unavailable", "reason": reason})


def failed(reason: str) -> HTTPException:
    """Return the answer to a change that could not be made through a fault of ours."""
    return HTTPException(500, {"error": "internal_error", "reason": reason})


async def answer_failure(request: Request, failure: Exception) -> Response:
    """Answer with what a failure says: its object as it is, text as `detail`; paths that are none as RabbitMQ does."""
    assert isinstance(failure, AnyHTTPException)
    detail: object = failure.detail
    if detail == HTTPStatus(failure.status_code).phrase and request.url.path.startswith(API):
        error = "Object Not Found" if failure.status_code == HTTPStatus.NOT_FOUND else detail
        detail = {"error": error, "reason": detail}
    body = detail if isinstance(detail, dict) else {"detail": detail}
    return JSONResponse(body, failure.status_code, failure.headers)


async def answer_wrong(request: Request, failure: Exception) -> Response:
    """Answer a request that is not well formed: what is wrong with each of its parts, in one line."""
    del request
    assert isinstance(failure, RequestValidationError)
    wrong = tell_wrong(failure.errors())
    parts = [f"{'.'.join(map(str, one.place[1:])) or 'body'}: {one.text}" for one in wrong]
    return JSONResponse({"error": "bad_request", "reason": "; ".join(parts)}, 400)
