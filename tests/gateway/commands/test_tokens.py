from __future__ import annotations

import json

import pytest
import typer

from gateway.commands.tokens import read_duration
from tests.support.commands import call_lmq, check_told, told_json, told_rows


def test_durations_have_a_unit_or_are_none():
    assert [read_duration(text) for text in ("90d", "12h", "1w", "30m", "never")] == [
        7_776_000,
        43_200,
        604_800,
        1_800,
        0,
    ]
    for wrong in ("", "d", "0d", "1", "-1d", "1.5h", "1y"):
        with pytest.raises(typer.Exit):
            read_duration(wrong)


@pytest.mark.slow
def test_program_with_a_token_asks_a_gateway_by_its_url_until_the_token_is_revoked(running):
    address = f"127.0.0.1:{running.port('admin')}"
    admin, url = ("--admin", address), ("--url", f"http://{address}")
    made = call_lmq("token", "add", "ci", "--scope", "vhosts", "--scope", "read", "--ends-in", "1h", *admin)
    (text,) = made.stdout.splitlines()
    head, row = told_rows("token", "list", *admin)
    assert head == ["name", "of user", "for", "ends", "used"]
    assert (row[:3], row[3][:2], row[4]) == (["ci", "guest", "vhosts, read"], "20", "-")
    assert told_json("token", "add", "forever", "--scope", "read", "--ends-in", "never", *admin)["name"] == "forever"
    assert [row[3] for row in told_rows("token", "list", *admin) if row[0] == "forever"] == ["never"]
    assert told_json("token", "revoke", "forever", *admin) == {"revoked": "forever"}
    assert text not in call_lmq("token", "list", "--json", *admin).stdout
    assert call_lmq(*url, "--token", text, "vhost", "add", "made").exit_code == 0
    names = json.loads(call_lmq(*url, "vhost", "list", "--json", env={"LMQ_TOKEN": text}).stdout)
    assert [one["name"] for one in names] == ["/", "made"]
    check_told(
        call_lmq(*url, "--token", text, "user", "delete", "x", "--yes"),
        "the token is not for this: its scopes are vhosts",
        code=5,
    )
    assert call_lmq("vhost", "delete", "made", "--yes", *admin).exit_code == 0
    assert told_json("token", "revoke", "ci", *admin) == {"revoked": "ci"}
    check_told(call_lmq(*url, "--token", text, "vhost", "list"), "^lmq: the token lets nobody in$", code=5)
    check_told(
        call_lmq("token", "add", "ci", "--scope", "all", *admin), "^lmq: scopes.0: must be one of 'read', [^;]*$"
    )
