"""The admin API of a gateway in the test's own loop, asked without a socket."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx

from gateway.admin.api import make_api
from gateway.admin.live import LiveFeed
from gateway.admin.view import AdminView
from tests.support.gateway import running_gateway

FREE = []  # applications that no client has now: each makes its 200 routes ready at its first requests, 2 ms a route
HERE = ("127.0.0.1", 40_000)
ELSEWHERE = ("192.0.2.7", 40_000)
GUEST = ("guest", "guest")


def make_view(gateway):
    """Return what the API of a gateway looks at."""
    return AdminView(
        gateway.broker,
        gateway.doors,
        gateway.capacity,
        gateway.authenticator,
        is_ready=lambda: True,
        uptime_ms=lambda: 7,
        since_ms=gateway.started_ms,
        listening=gateway.listeners.bound,
        begin_read=gateway.turns.begin_read,
        settings=lambda: gateway.settings,
        api_tokens=gateway.api_tokens,
        memory=gateway.memory,
        listeners=gateway.listeners.connections,
        log_files=gateway.store.retention,
    )


class LentApplication(httpx.ASGITransport):
    """Asks an application that another client may have had before, and gives it back when it is closed."""

    def __init__(self, view, peer):
        feed = LiveFeed(view)
        api = FREE.pop() if FREE else make_api(view, feed)
        api.state.view, api.state.feed = view, feed
        super().__init__(api, client=peer)

    async def aclose(self):
        api, self.app = self.app, None
        if api is not None:
            api.state.view = api.state.feed = None
            FREE.append(api)


def make_client(view, *, auth=GUEST, peer=HERE):
    """Return a client of the API, which comes from `peer`."""
    return httpx.AsyncClient(transport=LentApplication(view, peer), base_url="http://127.0.0.1", auth=auth)


@asynccontextmanager
async def managed_gateway(data_dir, *, auth=GUEST, peer=HERE, rights=None, **blocks):
    """Yield a started gateway and a client of its API; `rights` are the settings of its users."""
    if rights is not None:
        blocks["auth"] = rights
    async with (
        running_gateway(data_dir, **blocks) as gateway,
        make_client(make_view(gateway), auth=auth, peer=peer) as client,
    ):
        yield gateway, client


def declare(gateway, *names, durable=True, arguments=None):
    """Make queues, as a client would."""
    vhost = gateway.doors["amqp"].vhost
    return [
        vhost.add(name, durable=durable, auto_delete=False, owner=None, arguments=arguments or {}) for name in names
    ]
