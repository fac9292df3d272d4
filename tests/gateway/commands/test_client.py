from __future__ import annotations

import asyncio
import re
import ssl

import pytest
import typer

from gateway.commands import client
from gateway.commands.client import AdminClient, quote
from tests.support.certificates import authority_file, issue, server_files
from tests.support.http_server import HttpServer


def test_names_are_one_part_of_a_path():
    assert quote("/") == "%2F"
    assert quote("a b/c") == "a%20b%2Fc"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"detail": "no exchange"}', "no exchange"),
        (b'{"error": "bad_request", "reason": "in use"}', "in use"),
        (b'{"detail": 7}', ""),
        (b"<html>", ""),
        (b"[]", ""),
    ],
)
def test_a_refusal_is_told_in_its_words(body, told):
    assert client._refusal(body) == told


def test_another_scheme_than_http_is_refused(capsys):
    with pytest.raises(typer.Exit):
        AdminClient("ftp://nowhere")
    assert capsys.readouterr().err == "lmq: ftp://nowhere is not an http address\n"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://", "give HOST:PORT or a URL"),
        (":15672", "give HOST:PORT or a URL"),
        ("", "give HOST:PORT or a URL"),
        ("127.0.0.1:0", "give HOST:PORT or a URL"),
        ("127.0.0.1:many", "Port could not be cast to integer value as 'many'"),
        ("127.0.0.1:70000", "Port out of range 0-65535"),
        ("http://[::1", "Invalid IPv6 URL"),
    ],
)
def test_an_address_that_nobody_can_be_asked_at_is_wrong_use(capsys, address, told):
    with pytest.raises(typer.Exit) as caught:
        AdminClient(address)
    assert (caught.value.exit_code, capsys.readouterr().err) == (2, f"lmq: {address!r} is no address: {told}\n")


@pytest.mark.asyncio
async def test_an_authority_of_ones_own_is_told_how_to_be_named(capsys, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server_files())
    async with HttpServer(lambda asked: '{"name": "guest"}', ssl=context) as server:
        ask = AdminClient(f"https://localhost:{server.port}").get
        with pytest.raises(typer.Exit) as caught:
            await asyncio.to_thread(ask, "/api/whoami", {})
        assert caught.value.exit_code == 6
        assert capsys.readouterr().err.endswith(
            "; SSL_CERT_FILE in the environment names a file with an authority of your own\n"
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(authority_file()))
        assert await asyncio.to_thread(ask, "/api/whoami", {}) == {"name": "guest"}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("host", "is_expired", "told"),
    [
        ("localhost", True, "certificate has expired .*; put a new one in its place, the gateway reads it within ten"),
        ("127.0.0.1", False, "IP address mismatch, certificate is not valid for '127.0.0.1'\\. \\(_ssl.c:\\d+\\)$"),
    ],
)
async def test_what_is_wrong_with_a_certificate_is_told(capsys, monkeypatch, tmp_path, host, is_expired, told):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority_file()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*issue(tmp_path, "localhost", is_expired=is_expired))
    async with HttpServer(lambda asked: "{}", ssl=context) as server:
        ask = AdminClient(f"https://{host}:{server.port}").get
        with pytest.raises(typer.Exit):
            await asyncio.to_thread(ask, "/api/whoami", {})
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(told, line), line


@pytest.mark.slow
def test_questions_are_asked_without_a_name_and_changes_made_by_one(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    assert AdminClient(admin).get("/api/queues", {"name": "none", "page": None}) == []
    assert AdminClient(admin, "guest", "guest").get("/api/whoami")["name"] == "guest"
    with pytest.raises(typer.Exit):
        AdminClient(admin, "guest", "wrong").get("/api/overview")
    with pytest.raises(typer.Exit):
        AdminClient(admin).send("PUT", "/api/overview")


@pytest.mark.asyncio
async def test_questions_that_want_a_name_are_guest_s_on_this_machine(monkeypatch):
    def answer(asked):
        is_guest = asked.headers.get("authorization") == "Basic Z3Vlc3Q6Z3Vlc3Q="
        return '{"name": "guest"}' if is_guest else (401, {}, '{"reason": "log in"}')

    async with HttpServer(answer) as server:
        ask = AdminClient(f"http://localhost:{server.port}").get
        assert await asyncio.to_thread(ask, "/api/whoami") == {"name": "guest"}
        assert len(server.asked) == 2
        monkeypatch.setattr("gateway.address.leads_here", lambda url: False)  # as of a gateway elsewhere
        with pytest.raises(typer.Exit):
            await asyncio.to_thread(ask, "/api/whoami")
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("body", "told"),
    [(b"use https://\n", ": use https://"), (b"<html>", ""), (b"two\nlines", ""), (b"", ""), (b"x" * 300, "")],
)
def test_a_plain_text_is_told_where_it_is_a_line(body, told):
    assert client._plain(body) == told


def test_an_authority_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert client._certificate_hint(20).endswith(f"names {tmp_path / 'ca.pem'}, and there is no such file")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "token", "told"),
    [
        ((), "", "log in: give --user and --password, or a token in LMQ_TOKEN"),
        (("ann", "x"), "", "log in"),
        ((), "t", "log in"),
    ],
)
async def test_who_is_refused_without_a_name_is_told_how_to_give_one(capsys, monkeypatch, name, token, told):
    monkeypatch.setattr("gateway.address.leads_here", lambda _: False)  # nobody is guest there
    monkeypatch.setattr(client.GIVEN, "token", token or None)
    async with HttpServer(lambda asked: (401, {}, '{"reason": "log in"}')) as server:
        ask = AdminClient(f"http://localhost:{server.port}", *name).get
        with pytest.raises(typer.Exit) as caught:
            await asyncio.to_thread(ask, "/api/whoami", {})
    assert (caught.value.exit_code, capsys.readouterr().err) == (5, f"lmq: {told}\n")
