from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest

from gateway.auth.backends.asked import AskedBackend
from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Question, Verdict
from gateway.runtime.loop import Clock
from gateway.settings.backends import LdapBackendSettings
from gateway.settings.models import SettingsError
from tests.support.slapd import ADMIN, BASE, PEOPLE, SLAPD, Slapd

pytest.importorskip("ldap3")
from gateway.auth.backends.ldap_backend import (
    ANSWERS_BYTES_MAX,
    LdapBackend,
    _BoundedSocket,
    find_name,
)  # it needs the library

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # ldap3 drops the socket of an address that does not answer
]
with_server = pytest.mark.skipif(SLAPD is None, reason="slapd is not installed here")

ANN = Question("mqtt", "ann", "secret", "c1", "192.0.2.7")
SEARCH = {"base": PEOPLE, "bind_dn": ADMIN, "bind_password": "admin-secret"}
DIRECT = {"user_dn": f"uid=${{username}},{PEOPLE}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Slapd(tmp_path_factory.mktemp("slapd")) as server:
        yield server


@pytest.fixture
def ldap():
    made = []

    def make(url, **said):
        made.append(LdapBackend(LdapBackendSettings(kind="ldap", url=url, **said), {}))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@with_server
@pytest.mark.parametrize("way", [SEARCH, DIRECT], ids=["search", "template"])
async def test_password_is_that_of_the_entry(server, ldap, way):
    backend = ldap(server.url, **way)
    stranger = NOT_MINE if way is SEARCH else NO  # a bind does not tell what is missing
    assert (await backend.ask(ANN)).verdict is Verdict.YES
    assert await backend.ask(ANN._replace(password="x")) == NO
    assert await backend.ask(ANN._replace(user="eve")) == stranger
    assert (await backend.ask(ANN._replace(user="odd* (x)"))).verdict is Verdict.YES


@with_server
@pytest.mark.parametrize("way", [SEARCH, DIRECT], ids=["search", "template"])
@pytest.mark.parametrize("password", ["", "\0", "\0secret"])
async def test_empty_password_lets_nobody_in(server, ldap, way, password):
    assert await ldap(server.url, **way).ask(ANN._replace(password=password)) == NO


INJECTIONS = [
    "*",
    "a*",
    "ann)(uid=*",
    "*)(uid=*))(|(uid=*",
    "ann)(|(userPassword=*)",
    "ann)(&",
    "ann,ou=people",
    f"ann,{PEOPLE}",
    "ann+uid=bob",
    "ann\\2a",
    "\\61nn",
    "ann\\",
    "ann\u2028",
    "ann#",
    "#616e6e",
    '"ann"',
    "ann;uid=bob",
    "=ann",
    "a<b>c",
    "ANN",
    "ann ",
    " ann",
]


@with_server
@pytest.mark.parametrize("user", INJECTIONS)
async def test_name_is_never_a_part_of_a_filter_or_of_a_name_of_an_entry(server, ldap, user):
    for way in (SEARCH, DIRECT):
        reply = await ldap(server.url, **way).ask(ANN._replace(user=user))
        assert reply == (NOT_MINE if way is SEARCH else NO)


@with_server
@pytest.mark.parametrize("way", [SEARCH, DIRECT], ids=["search", "template"])
async def test_groups_are_in_an_attribute_or_in_entries_of_their_own(server, ldap, way):
    async def groups(user="ann", **said):
        return (await ldap(server.url, **way, **said).ask(ANN._replace(user=user))).groups

    own = "self_read" if way is DIRECT else ""
    assert await groups() == ()
    assert await groups(groups_attribute="departmentNumber") == ("plant", "office")
    assert await groups(groups_attribute="seeAlso") == ("night shift",)
    assert await groups(groups_attribute="mail") == ()
    below = {"groups_base": f"ou=groups,{BASE}"}
    assert sorted(await groups(**below)) == ["pumps", "turbines"], own
    assert await groups("odd* (x)", **below) == ("strange",)
    text = "(member=uid=${username},ou=people,dc=example,dc=com)"
    assert sorted(await groups(**below, groups_filter=text)) == ["pumps", "turbines"]


@with_server
async def test_connection_is_safe_by_ldaps_or_starttls_and_the_certificate_is_checked(server, ldap, tmp_path):
    safe = f"ldaps://localhost:{server.tls_port}"
    assert (await ldap(safe, **SEARCH, ca=server.ca).ask(ANN)).verdict is Verdict.YES
    assert (await ldap(server.url, **SEARCH, ca=server.ca, starttls=True).ask(ANN)).verdict is Verdict.YES
    for url, more in (
        (safe, {}),
        (server.url, {"starttls": True}),
        (safe.replace("localhost", "127.0.0.1"), {"ca": server.ca}),
    ):
        with pytest.raises(BackendError):
            await ldap(url, **SEARCH, **more).ask(ANN)
    with pytest.raises(SettingsError):
        ldap(safe, **SEARCH, ca=tmp_path / "none.pem")


@with_server
@pytest.mark.parametrize(
    "said",
    [
        {"bind_password": "wrong"},
        {"base": "ou=nothing,dc=example,dc=com"},
        {"filter": "(|(uid=${username})(uid=bob))"},
        {"filter": "(uid=${username}"},
        {"groups_base": "ou=nothing,dc=example,dc=com"},
    ],
)
async def test_directory_that_is_not_as_the_settings_say_lets_nobody_in(server, ldap, said):
    with pytest.raises(BackendError) as caught:
        await ldap(server.url, **{**SEARCH, **said}).ask(ANN)
    assert "secret" not in str(caught.value)


@with_server
async def test_directory_that_goes_away_and_comes_back(server, ldap):
    backend = ldap(server.url, **SEARCH)
    server.stop()
    with pytest.raises(BackendError):
        await backend.ask(ANN)
    server.start()
    assert (await backend.ask(ANN)).verdict is Verdict.YES


@pytest.mark.parametrize(
    "raw", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x30\x84\x7f\xff\xff\xff", b"\x30\x00" * 9]
)
async def test_server_that_is_no_directory_lets_nobody_in(ldap, raw):
    async def serve(reader, writer):
        writer.write(raw)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    backend = ldap(f"ldap://127.0.0.1:{server.sockets[0].getsockname()[1]}", **DIRECT, timeout_ms=100)
    with pytest.raises(Exception, match=r".*") as caught:  # of any kind: the chain takes none of them for a yes
        await backend.ask(ANN)
    assert "secret" not in str(caught.value)
    server.close()


@pytest.mark.parametrize("raw", [b"", b"\x30", b"\x30\x84\x7f\xff\xff\xff\x02"])
async def test_directory_that_hangs_lets_nobody_in_when_the_time_is_over_and_holds_up_nobody_else(ldap, raw):
    ended = asyncio.Event()

    async def hang(reader, writer):
        writer.write(raw)
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    slow = ldap(f"ldap://127.0.0.1:{server.sockets[0].getsockname()[1]}", **DIRECT, timeout_ms=50, requests_max=2)
    asked = AskedBackend(slow, "auth.backends[0]", Clock(), b"key")
    turns = 0
    async with asyncio.timeout(20):
        asking = asyncio.gather(*(asked.ask(ANN) for _ in range(3)), return_exceptions=True)
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
    assert [type(answer) for answer in asking.result()] == [BackendError] * 3
    assert turns > 2  # the loop was not held up: it would be once all three had asked
    ended.set()
    server.close()


@pytest.mark.parametrize("size", [1, 1 << 16], ids=["drips", "floods"])
async def test_directory_that_answers_without_end_is_given_up_by_time_and_by_size(ldap, size):
    sent = 0

    async def answer(reader, writer):
        nonlocal sent
        writer.write(b"\x30\x84\x7f\xff\xff\xff")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(bytes(size))
                await writer.drain()
                sent += size
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    endless = ldap(f"ldap://127.0.0.1:{server.sockets[0].getsockname()[1]}", **DIRECT, timeout_ms=200)
    async with asyncio.timeout(20):
        with pytest.raises(BackendError, match=r"too long|timed out"):
            await endless.ask(ANN)  # as the thread does it: nobody has to give it up
    server.close()
    assert sent < 16 * ANSWERS_BYTES_MAX  # with what both sockets hold


async def test_groups_are_called_by_the_value_in_front():
    assert find_name("cn=night shift,ou=groups,dc=x") == "night shift"
    assert find_name("plant") == "plant"
    assert find_name("a=b=c") in {"b=c", "a=b=c"}
    assert find_name("=") == "="


async def test_password_comes_from_the_environment():
    said = LdapBackendSettings(kind="ldap", url="ldap://x", base="o=x", bind_dn="cn=x", bind_password_env="PW")
    with pytest.raises(SettingsError, match="PW"):
        LdapBackend(said, {})
    LdapBackend(said, {"PW": "x"})


async def test_answers_are_read_up_to_so_many_bytes_and_until_a_moment():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        bounded = _BoundedSocket(ours, time.monotonic() + 60)
        left = ANSWERS_BYTES_MAX
        theirs.setblocking(False)
        with pytest.raises(OSError, match="its answers are too long"):
            while True:
                left -= theirs.send(bytes(1 << 14))
                bounded.recv(1 << 14)
        assert -(1 << 15) < left <= 0
        with pytest.raises(TimeoutError):
            _BoundedSocket(ours, time.monotonic() - 1).recv(1)
