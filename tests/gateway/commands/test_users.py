from __future__ import annotations

import contextlib
import json
import socket
from typing import get_args

import pytest

from gateway.commands.users import TAGS, rows_of
from gateway.settings.models import UserTag
from tests.support import mqtt
from tests.support.commands import call_lmq, check_told, told_json, told_rows


def test_users_are_rows_one_for_each_place_where_they_may_do_something():
    ours, theirs = {"of_settings": False, "is_disabled": False}, {"of_settings": True, "is_disabled": False}
    users = [
        {"name": "bob", "tags": [], "lmq": ours},
        {"name": "ann", "tags": ["a", "b"], "lmq": theirs},
        {"name": "eve", "tags": ["a"], "lmq": {**ours, "is_disabled": True}},
    ]
    permissions = [
        {"user": "bob", "vhost": "/", "configure": "^$", "write": "^a", "read": ".*"},
        {"user": "bob", "vhost": "v", "configure": "^$", "write": "^$", "read": "^b"},
    ]
    bob = {"name": "bob", "tags": "", "kept_in": "the data folder", "comes_in": "yes"}
    assert rows_of(users, permissions) == [
        {**bob, **permissions[0]},
        {**bob, **permissions[1]},
        {"name": "ann", "tags": "a, b", "kept_in": "the settings", "comes_in": "yes"},
        {"name": "eve", "tags": "a", "kept_in": "the data folder", "comes_in": "disabled"},
    ]


@pytest.mark.slow
def test_users_are_made_granted_listed_and_deleted(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    new = ("--new-password", "secret")
    assert call_lmq("user", "add", "bob/1", *new, "--tag", "monitoring", *admin).exit_code == 0
    again = call_lmq("user", "add", "bob/1", "--new-password", "x", *admin)
    check_told(again, "^lmq: user 'bob/1' exists already", code=7)
    assert call_lmq("grant", "bob/1", "--write", "^a", "--read", ".*", *admin).exit_code == 0
    head, *rows = told_rows("user", "list", *admin)
    assert head == ["name", "tags", "kept in", "comes in", "vhost", "configure", "write", "read"]
    assert rows == [["bob/1", "monitoring", "the data folder", "yes", "/", "^$", "^a", ".*"]]
    assert call_lmq("grant", "bob/1", "--all", *admin).exit_code == 0
    assert call_lmq("user", "passwd", "bob/1", "--new-password", "other", *admin).exit_code == 0
    assert call_lmq("user", "tags", "bob/1", "administrator", *admin).exit_code == 0
    asked_by = (*admin, "--user", "bob/1", "--password", "other")
    assert told_rows("user", "list", *asked_by)[1][:2] == ["bob/1", "administrator"]
    assert call_lmq("revoke", "bob/1", *admin).exit_code == 0
    nowhere = ["bob/1", "administrator", "the data folder", "yes", "-", "-", "-", "-"]
    assert told_rows("user", "list", *admin) == [head, nowhere]
    told = (
        "^lmq: this deletes user 'bob/1' with no permissions, its tokens, and its open connections; add --yes to do it$"
    )
    check_told(call_lmq("user", "delete", "bob/1", *admin), told)
    assert call_lmq("user", "delete", "bob/1", "--yes", *admin).exit_code == 0
    check_told(call_lmq("user", "delete", "bob/1", *admin), "^lmq: no user 'bob/1'$", code=4)
    check_told(call_lmq("grant", "bob/1", "--all", *admin), "^lmq: no user 'bob/1'$", code=4)
    check_told(call_lmq("revoke", "bob/1", *admin), "^lmq: user 'bob/1' has no such permissions in vhost '/'$", code=4)
    check_told(call_lmq("user", "add", "", *new, *admin), "^lmq: a name is empty$")


@pytest.fixture
def dial(running):
    with contextlib.ExitStack() as opened:
        yield lambda password: log_in(opened, running.address("mqtt"), password)


def log_in(opened, address, password):
    """Return a connection of eve's, and what its CONNECT is answered."""
    sock = opened.enter_context(socket.create_connection(address, timeout=30))
    sock.sendall(mqtt.connect(b"of-eve", user=b"eve", password=password))
    return sock, sock.recv(4)


def ask_for(sock, topic):
    """Return the code of a subscription."""
    sock.sendall(mqtt.subscribe(1, (topic, 0)))
    return sock.recv(5)[-1]


@pytest.mark.slow
def test_what_is_changed_counts_at_once_for_a_client_that_is_in(running, dial):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")

    def change(*words):
        told = call_lmq(*words, *admin)
        assert told.exit_code == 0, told.stderr

    change("user", "add", "eve", "--new-password", "secret")
    sock, answer = dial(b"secret")
    assert answer == mqtt.connack()
    assert ask_for(sock, b"a") == 0x80
    change("grant", "eve", "--all")
    assert ask_for(sock, b"a") == 0
    change("revoke", "eve")
    assert sock.recv(1) == b""  # it may read less
    sock, _ = dial(b"secret")
    assert ask_for(sock, b"a") == 0x80
    change("user", "passwd", "eve", "--new-password", "other")
    assert sock.recv(1) == b""
    assert dial(b"secret")[1] == mqtt.connack(4)
    sock, answer = dial(b"other")
    assert answer == mqtt.connack()
    change("user", "delete", "eve", "--yes")
    assert sock.recv(1) == b""
    assert dial(b"other")[1] == mqtt.connack(4)


@pytest.mark.slow
def test_a_new_password_is_asked_for_read_or_made_up(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    told = call_lmq("user", "add", "ann", "--generate", "--tag", "monitoring", *admin)
    assert told.exit_code == 0
    assert (
        "has no permissions yet, and may do only what rules allow; to allow everything: lmq grant ann --all"
        in told.stderr
    )
    (made,) = told.stdout.splitlines()
    assert len(made) == 24
    assert call_lmq("user", "list", *admin, "--user", "ann", "--password", made).exit_code == 5  # of administrators
    assert call_lmq("status", *admin, "--user", "ann", "--password", made).exit_code == 0
    assert call_lmq("user", "passwd", "ann", "--password-stdin", *admin, input="other\n").exit_code == 0
    assert call_lmq("status", *admin, "--user", "ann", "--password", made).exit_code == 5
    assert call_lmq("status", *admin, "--user", "ann", "--password", "other").exit_code == 0
    check_told(call_lmq("user", "add", "eve", "--password", "x", *admin), "--password is for --user")
    check_told(call_lmq("user", "passwd", "ann", "--password", "x", *admin), "--password is for --user")
    check_told(call_lmq("user", "add", "eve", "--generate", "--password-stdin", *admin), "give only one of")
    check_told(call_lmq("user", "add", "eve", "--generate", "--tag", "bogus", *admin), "'bogus' is not a tag")
    check_told(call_lmq("user", "tags", "ann", "bogus", *admin), "'bogus' is not a tag")
    assert call_lmq("user", "delete", "ann", "--yes", *admin).exit_code == 0


@pytest.mark.slow
def test_a_user_is_disabled_and_enabled(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    new = ("--new-password", "secret", "--tag", "monitoring")
    assert call_lmq("user", "add", "dis/abled", *new, *admin).exit_code == 0
    assert call_lmq("user", "limits", "dis/abled", "--max-connections", "3", *admin).exit_code == 0
    asked_by = (*admin, "--user", "dis/abled", "--password", "secret")
    for _ in range(2):  # again is no mistake
        assert call_lmq("user", "disable", "dis/abled", *admin).exit_code == 0
    assert call_lmq("status", *asked_by).exit_code == 5
    assert told_rows("user", "list", *admin)[1][:4] == ["dis/abled", "monitoring", "the data folder", "disabled"]
    (told,) = json.loads(call_lmq("user", "list", "--json", *admin).stdout)["users"]
    assert (told["lmq"]["is_disabled"], told["limits"]) == (True, {"max-connections": 3})
    assert call_lmq("user", "enable", "dis/abled", *admin).exit_code == 0
    assert call_lmq("status", *asked_by).exit_code == 0
    assert told_rows("user", "list", *admin)[1][:4] == ["dis/abled", "monitoring", "the data folder", "yes"]
    assert call_lmq("user", "delete", "dis/abled", "--yes", *admin).exit_code == 0
    for command in ("disable", "enable"):
        check_told(call_lmq("user", command, "dis/abled", *admin), "^lmq: no user 'dis/abled'$", code=4)


@pytest.mark.slow
def test_changes_of_users_are_told_to_programs(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    made = told_json("user", "add", "joe", "--generate", "--tag", "monitoring", *admin)
    assert (made["added"], made["tags"], len(made["password"])) == ("joe", ["monitoring"], 24)
    assert call_lmq("status", "--user", "joe", "--password", made["password"], *admin).exit_code == 0
    assert told_json("user", "passwd", "joe", "--new-password", "other", *admin) == {"changed": "joe"}
    assert told_json("user", "tags", "joe", *admin) == {"changed": "joe", "tags": []}
    granted = {"granted": "joe", "vhost": "/", "configure": "^$", "write": "^a", "read": "^$"}
    assert told_json("grant", "joe", "--write", "^a", *admin) == granted
    assert told_json("revoke", "joe", *admin) == {"revoked": "joe", "vhost": "/"}
    assert told_json("user", "disable", "joe", *admin) == {"disabled": "joe"}
    assert told_json("user", "enable", "joe", *admin) == {"enabled": "joe"}
    assert told_json("user", "delete", "joe", "--yes", *admin) == {"deleted": "joe"}
    gone = call_lmq("user", "delete", "joe", "--yes", "--json", *admin)
    assert (gone.exit_code, gone.stdout) == (4, "")


def test_tags_are_those_of_the_settings():
    assert set(TAGS) == set(get_args(UserTag))
