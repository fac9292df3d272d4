"""The console: its pages, as files of the package, and the stream that keeps them live. No build, no other host."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, NamedTuple

from fastapi import Depends, Header, HTTPException, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from gateway.admin.live import LiveFeed, TooManyFollowersError
from gateway.admin.login import Looker
from gateway.admin.routes import Routes

CONSOLE = Routes()
KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# All that a page may load is ours: nothing of another host, no frame around it, no code inside it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for each time, and answered with 304 where nothing changed
}


class Asset(NamedTuple):
    """A file of the console."""

    body: bytes
    kind: str
    tag: str


@cache
def read_assets() -> dict[str, Asset]:
    """Return all files of the console, by their path below it."""
    assets: dict[str, Asset] = {}
    _read_folder(files("gateway.admin") / "static", "", assets)
    return assets


def _read_folder(folder: Traversable, prefix: str, assets: dict[str, Asset]) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _read_folder(entry, f"{prefix}{entry.name}/", assets)
        else:
            kind = KINDS.get(entry.name.rpartition(".")[2])
            if kind is not None:
                body = entry.read_bytes()
                assets[prefix + entry.name] = Asset(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


@CONSOLE.head("/", include_in_schema=False)
@CONSOLE.get("/", include_in_schema=False)
async def index(if_none_match: Annotated[str, Header()] = "") -> Response:
    """The console's one page."""
    return _give("index.html", if_none_match)


@CONSOLE.get("/api/docs", include_in_schema=False)
async def docs(if_none_match: Annotated[str, Header()] = "") -> Response:
    """What the API answers, for people."""
    return _give("docs.html", if_none_match)


@CONSOLE.get("/api/docs/", include_in_schema=False)
async def docs_behind_a_slash() -> Response:
    """Lead to that page, which names its files as seen from there."""
    return RedirectResponse("../docs")


@CONSOLE.get("/console/{path:path}", include_in_schema=False)
async def asset(path: str, if_none_match: Annotated[str, Header()] = "") -> Response:
    """A file of the console."""
    return _give(path, if_none_match)


def _give(path: str, known: str) -> Response:
    found = read_assets().get(path)
    if found is None:
        raise HTTPException(404, "no such file of the console")
    headers = {**HEADERS, "ETag": found.tag}
    if known == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, headers=headers, media_type=found.kind)


async def _find_feed(request: Request) -> LiveFeed:
    feed = request.app.state.feed
    assert isinstance(feed, LiveFeed)
    return feed


@CONSOLE.get("/api/lmq/live", response_class=StreamingResponse)
async def live(looker: Looker, feed: Annotated[LiveFeed, Depends(_find_feed)]) -> StreamingResponse:
    """Counters of the last five minutes, second by second, then each new second: server-sent events.

    `history` holds an array of samples, `sample` one; `lists` in one has a number for each list that seldom changes,
    which goes up when the list may have changed. A user that sees its own virtual hosts alone gets their totals,
    from now on. 503: as many streams are open as may be.
    """
    try:
        events = feed.follow(looker)
    except TooManyFollowersError as error:
        raise HTTPException(503, "too many streams are open") from error
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
