from __future__ import annotations

import pytest
import typer

from gateway.commands import client
from gateway.commands.client import AdminClient, quote


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


@pytest.mark.slow
def test_questions_are_asked_without_a_name_and_changes_made_by_one(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    assert AdminClient(admin).get("/api/queues", {"name": "none", "page": None}) == []
    assert AdminClient(admin, "guest", "guest").get("/api/whoami")["name"] == "guest"
    with pytest.raises(typer.Exit):
        AdminClient(admin, "guest", "wrong").get("/api/overview")
    with pytest.raises(typer.Exit):
        AdminClient(admin).send("PUT", "/api/overview")
