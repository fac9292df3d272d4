"""Changes come from our own pages, or from programs; never from a page of another site that a browser has open.

A browser sends the login that it knows with each request to us, whatever page asked for it. It also says which page
that was: in `Sec-Fetch-Site`, or else in `Origin`. Programs send neither. A site whose name is made to lead to this
machine is its own site to the browser, but it cannot change the name, which is in `Host`.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOKS = frozenset({"GET", "HEAD", "OPTIONS"})
OURS = frozenset({"same-origin", "none"})


class SameSite:
    """An ASGI application in front of another one; requests that change something are refused from other sites."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in LOOKS and is_of_other_site(Headers(scope=scope)):
            refusal = {"error": "forbidden", "reason": "a page of another site asked for this"}
            await JSONResponse(refusal, 403)(scope, receive, send)
            return
        await self._application(scope, receive, send)


def is_of_other_site(headers: Headers) -> bool:
    """Return whether a page of another site asked for this request."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in OURS
    origin = headers.get("origin")
    return origin is not None and origin.rpartition("://")[2] != headers.get("host")


def is_this_machine(host: str | None) -> bool:
    """Return whether a request named us by an address or as localhost: by no name that a site could have given us."""
    if host is None:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
