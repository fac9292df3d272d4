from __future__ import annotations

import asyncio
import contextlib
import ipaddress

import httpx
import pytest
from fastapi import FastAPI

from gateway.admin.bound import bind_socket
from gateway.admin.gate import CONNECTIONS_MAX, Gate
from gateway.admin.server import AdminServer
from gateway.app import Gateway
from gateway.net.paces import AllPaces, ListenerRates
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.settings.limits import AddressLimitsSettings, LimitsSettings
from gateway.settings.listen import AdminSettings
from gateway.settings.models import AuthSettings
from tests.support.gateway import ANY_PORT, make_settings, running_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio

HOST = "192.0.2.7"


class Site:
    """A gate whose clock is set by hand."""

    def __init__(self, *, door=0, own=0, address=0, **more):
        self.now_ms = 0
        self.noted = []
        paces = AllPaces(AddressLimitsSettings(connects_rate=address), lambda: self.now_ms).of("admin", door)
        self.gate = Gate(paces.at(ListenerRates(own)), note=self.noted.append, **more)

    def come(self, count=3, host=HOST):
        return [self.gate.refuses(host, 0) for _ in range(count)]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("door", "connects_rate"), ("own", "listener_connects_rate"), ("address", "address_connects_rate")],
)
async def test_connections_that_come_too_fast_are_turned_away(limit, reason, caplog):
    site = Site(**{limit: 2})
    assert site.come() == [False, False, True]
    assert site.noted == [reason]
    assert f"refused connection door=admin peer={HOST} reason={reason}" in caplog.text
    assert site.come(1, "198.51.100.1") == [limit != "address"]
    site.now_ms = 1_000
    assert site.come() == [False, False, True]


async def test_those_that_are_too_many_are_turned_away():
    assert [Gate().refuses(HOST, count) for count in (CONNECTIONS_MAX - 1, CONNECTIONS_MAX)] == [False, True]
    site = Site(connections_max=2)
    assert [site.gate.refuses(HOST, count) for count in (1, 2)] == [False, True]
    assert site.noted == ["listener_connections_max"]


async def test_host_that_a_proxy_tells_counts_and_not_the_proxy_s():
    site = Site(address=1, is_proxied=True)
    assert site.come() == [False, False, False]
    assert [site.gate.refuses_told(host) for host in (HOST, HOST, "198.51.100.1")] == [False, True, False]
    assert not Site(address=1).gate.refuses_told(HOST)


async def test_gate_turns_away_what_a_client_opens(tmp_path):
    """By the settings, and others after they were read again; with a line and a count."""
    admin = AdminSettings(listen=[{"address": ANY_PORT, "connects_rate": 1_000}], connects_rate=2)
    gateway = Gateway(make_settings(tmp_path, admin=admin))
    gateway._paces._read_ms = lambda: 0
    await gateway.start()
    try:
        host, port = gateway.listening["admin"]
        assert await _count_served(host, port, 5) == 2
        refused = gateway.broker.metrics.door("admin").refused
        assert refused["connects_rate"] == 3
        settings = gateway.settings
        wanted = settings.model_copy(
            update={
                "admin": settings.admin.model_copy(update={"connects_rate": 0}),
                "limits": LimitsSettings(address=AddressLimitsSettings(connects_rate=1, exempt=())),
            }
        )
        await gateway.reload(wanted)
        assert await _count_served(host, port, 3, "127.0.0.7") == 1
    finally:
        await gateway.stop()


async def _count_served(host, port, count, come_from="127.0.0.1"):
    served = 0
    for _ in range(count):
        reader, writer = await asyncio.open_connection(host, port, local_addr=(come_from, 0))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            served += (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
    return served


async def test_connection_whose_host_a_proxy_told_is_turned_away_once_it_is_told():
    api = FastAPI()
    paces = AllPaces(AddressLimitsSettings(connects_rate=1), lambda: 0).of("admin", 0)
    networks = [ipaddress.ip_network("127.0.0.0/8")]
    gate = Gate(paces, is_proxied=True)
    sock = await bind_socket("127.0.0.1", 0)
    address = sock.getsockname()
    server = AdminServer(api, sock, lambda host: [ProxyHeader(host, networks)], gate=gate)
    await server.start()
    found = []
    for told in ("192.0.2.7", "192.0.2.7", "192.0.2.8"):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(f"PROXY TCP4 {told} 192.0.2.9 1 2\r\nGET / HTTP/1.0\r\n\r\n".encode())
        try:
            found.append((await reader.read()).startswith(b"HTTP/1.1 404"))
        except ConnectionError:
            found.append(False)
        writer.close()
    assert found == [True, False, True]
    await server.stop()


async def test_logins_of_a_user_are_counted_by_connection(tmp_path):
    limits = {"connects_rate": 2}
    users = {"ann": {"password_hash": quick_hash("secret"), "tags": ["administrator"], "limits": limits}}
    auth = AuthSettings.model_validate({"users": users})
    async with running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT), auth=auth) as gateway:
        gateway.authenticator.quotas._read_ms = lambda: 0
        host, port = gateway.listening["admin"]
        url = f"http://{host}:{port}/api/overview"
        said = []
        for login in (("ann", "secret"), ("ann", "secret"), ("ann", "secret"), ("guest", "guest")):
            async with httpx.AsyncClient(auth=login, timeout=60) as client:  # a connection of its own
                for _ in range(3):
                    answer = await client.get(url)
                said.append(answer.status_code)
        assert said == [200, 200, 429, 200]
        token = gateway.api_tokens.add("ci", "ann", ("read",), ends_at_ms=1 << 60, now_ms=0)
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            answer = await client.get(url)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert answer.json()["reason"] == "connection refused for user 'ann': user connection rate limit (2) is reached"
