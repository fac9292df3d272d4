from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Path, Query, Request, Response, routing
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.middleware import Middleware

from gateway.admin.api import make_api
from gateway.admin.live import LiveFeed
from gateway.admin.management.failures import answer_failure
from gateway.admin.shortcut import Shortcut
from tests.support.admin import ELSEWHERE, GUEST, HERE, make_view
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio
Name = Annotated[str, Path(max_length=8), AfterValidator(unquote)]


class Asked(BaseModel, frozen=True):
    page: Annotated[int | None, Field(ge=1)] = None
    word: str = "none"


class Told(BaseModel):
    name: str
    size: float


async def number() -> int:
    return 7


async def caller(request: Request, count: Annotated[int, Depends(number)]) -> str:
    if "authorization" not in request.headers:
        raise HTTPException(401, "log in", {"WWW-Authenticate": "Basic"})
    return f"{count} {request.headers['authorization']}"


Caller = Annotated[str, Depends(caller)]


async def look(who: Caller, count: Annotated[int, Depends(number)], asked: Annotated[Asked, Query()]) -> dict[str, Any]:
    return {"who": who, "count": count, "page": asked.page, "word": asked.word, "é": float("nan")}


async def find(name: Name, kind: Annotated[Literal["a", "b"] | None, Query()] = None, *, is_on: bool = False) -> Told:
    if name == "none":
        raise HTTPException(404, {"error": "no such thing"})
    return Told(name=f"{name} {kind} {is_on}", size=0.1)


async def latest() -> Response:
    return PlainTextResponse("the latest", headers={"X-Kind": "latest"})


async def accept(accept: Annotated[str, Header(max_length=9)] = "") -> JSONResponse:
    return JSONResponse({"accept": accept})


async def several(names: Annotated[list[str], Query(alias="name")]) -> dict[str, Any]:
    return {"names": names}


async def quiet(response: Response) -> dict[str, Any]:
    response.headers["X-Kind"] = "quiet"
    return {}


async def made() -> dict[str, Any]:
    return {}


def beside() -> dict[str, Any]:
    return {"in": "a thread"}


async def anything(path: str) -> dict[str, Any]:
    return {"path": path}


async def broken() -> dict[str, Any]:
    raise RuntimeError("a fault of ours")


def make_application(*, with_shortcut: bool) -> FastAPI:
    inner, outer, api = APIRouter(), APIRouter(prefix="/api"), FastAPI(openapi_url=None)
    for path, function in (("/look", look), ("/things/{name}", find), ("/things/latest", latest), ("/accept", accept)):
        inner.get(path)(function)
    for path, function in (("/several", several), ("/quiet", quiet), ("/beside", beside), ("/broken", broken)):
        inner.get(path)(function)
    inner.get("/made", status_code=201)(made)
    inner.get("/odd/{name}")(find)
    outer.include_router(inner)
    api.include_router(outer)
    api.get("/latest")(latest)
    api.get("/api/odd/{path:path}")(anything)
    api.add_exception_handler(AnyHTTPException, answer_failure)
    if with_shortcut:
        api.add_middleware(Shortcut, answer_failure=answer_failure)
    return api


SEEN: list[str] = []


class Noting:
    """FastAPI's own application, behind the shortcut: notes the paths that come to it."""

    def __init__(self, application):
        self.application = application

    async def __call__(self, scope, receive, send):
        SEEN.append(scope["path"])
        await self.application(scope, receive, send)


async def ask(api, path, headers=None, method="GET", peer=HERE, auth=None):
    transport = httpx.ASGITransport(api, raise_app_exceptions=False, client=peer)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", auth=auth) as client:
        answer = await client.request(method, path, headers=headers)
    return answer.status_code, dict(answer.headers), answer.content


@pytest.mark.parametrize(
    "path",
    [
        "/api/look?page=2&word=a%20b&other=1",
        "/api/look?word=&word=last",
        "/api/look",
        "/api/things/%C3%A9?kind=b&is_on=yes",
        "/api/things/none",
        "/api/things/latest",  # a thing of that name, as its route came first
        "/api/accept",
        "/latest",
    ],
)
async def test_question_that_is_well_formed_gets_the_answer_of_fastapi_without_it(path):
    api, plain = make_application(with_shortcut=True), make_application(with_shortcut=False)
    api.user_middleware.append(Middleware(Noting))
    SEEN.clear()
    assert await ask(api, path, {"Authorization": "me"}) == await ask(plain, path, {"Authorization": "me"})
    assert SEEN == []


async def test_failure_of_what_a_route_depends_on_is_answered_as_fastapi_does():
    api, plain = make_application(with_shortcut=True), make_application(with_shortcut=False)
    answer = await ask(api, "/api/look")
    assert answer[0] == 401
    assert answer[1]["www-authenticate"] == "Basic"
    assert answer == await ask(plain, "/api/look")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/look?page=0", 422),
        ("/api/look?page=x", 422),
        ("/api/things/a-name-that-is-too-long", 422),
        ("/api/things/a?kind=c", 422),
        ("/api/several?name=a&name=b", 200),
        ("/api/quiet", 200),
        ("/api/made", 201),
        ("/api/beside", 200),
        ("/api/odd/a", 200),
        ("/api/odd/a/b", 200),
        ("/api/things/", 404),
        ("/api/things/a/b", 404),
        ("/api/latest", 404),
        ("/api/look/", 307),
    ],
)
async def test_anything_else_is_left_to_fastapi(path, status):
    api, plain = make_application(with_shortcut=True), make_application(with_shortcut=False)
    api.user_middleware.append(Middleware(Noting))
    SEEN.clear()
    answer = await ask(api, path, {"Authorization": "me"})
    assert answer[0] == status
    assert answer == await ask(plain, path, {"Authorization": "me"})
    assert path.startswith(SEEN.pop())
    assert SEEN == []


async def test_header_that_is_too_long_is_refused_by_fastapi():
    api, plain = make_application(with_shortcut=True), make_application(with_shortcut=False)
    answer = await ask(api, "/api/accept", {"Accept": "1234567890"})
    assert answer[0] == 422
    assert answer == await ask(plain, "/api/accept", {"Accept": "1234567890"})


async def test_changes_and_heads_are_left_to_fastapi():
    api, plain = make_application(with_shortcut=True), make_application(with_shortcut=False)
    for method in ("POST", "HEAD"):
        answer = await ask(api, "/latest", method=method)
        assert answer[0] == 405
        assert answer == await ask(plain, "/latest", method=method)


async def test_fault_of_a_function_is_an_internal_error():
    api = make_application(with_shortcut=True)
    status, _, body = await ask(api, "/api/broken")
    assert (status, body) == (500, b"Internal Server Error")


def _without_shortcut(api):
    api.user_middleware = [one for one in api.user_middleware if one.cls is not Shortcut]
    return api


# What routes name in their paths; what is not here is asked for by a name that nothing has.
NAMES = {"vhost": "%2F", "name": "readings", "source": "amq.topic", "destination": "readings", "letter": "q"}
LOGINS = [(HERE, None), (HERE, GUEST), (ELSEWHERE, None)]
NUMBER = re.compile(rb"[0-9]+(\.[0-9]+)?")  # counters and clocks go on from one question to the next
LEFT_OUT = {"/api/lmq/live", "/api/auth/hash_password/{password}"}  # a stream without an end; another hash each time


def fill(path):
    return re.sub(r"\{(\w+)\}", lambda found: NAMES.get(found[1], "nothing"), path)


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?page=1&page_size=2&sort=name&columns=name", "?page=0&count=0&topic=a"])
async def test_each_question_of_the_api_has_the_answer_that_fastapi_gives(tmp_path, query):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        ours, plain = make_api(view, LiveFeed(view)), _without_shortcut(make_api(view, LiveFeed(view)))
        await ask(plain, "/api/queues/%2F/readings", method="PUT", auth=GUEST)
        paths = [path for path, methods in ours.openapi()["paths"].items() if "get" in methods and path not in LEFT_OUT]
        assert len(paths) > 100
        for path in paths:
            for peer, auth in LOGINS:
                answers = [await ask(api, fill(path) + query, peer=peer, auth=auth) for api in (ours, plain)]
                status, headers, body = zip(*answers, strict=True)
                assert status[0] == status[1], path
                assert [set(one) for one in headers] == [set(headers[1])] * 2, path
                assert headers[0]["content-type"] == headers[1]["content-type"], path
                assert NUMBER.sub(b"0", body[0]) == NUMBER.sub(b"0", body[1]), path


async def test_fastapi_knows_where_functions_are_written_without_reading_the_source():
    await ask(make_application(with_shortcut=True), "/latest")
    known = routing._endpoint_context_cache[id(quiet)]
    assert (known["file"], known["line"], known["function"]) == (__file__, inspect.getsourcelines(quiet)[1], "quiet")
