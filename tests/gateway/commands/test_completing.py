from __future__ import annotations

import paho.mqtt.publish
import pytest

from gateway.commands.client import AdminClient
from tests.support.commands import at, call_lmq, stayed

pytestmark = pytest.mark.slow


def complete(line, admin, shell="bash"):
    """Return what a shell would be given for a line."""
    env = {"_LMQ_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    others = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    told = call_lmq(env={**env, **others, "LMQ_CLI_ADMIN": admin})
    assert told.stderr == ""  # it would be in the line that is typed
    return told.stdout.split()


def test_names_of_the_running_gateway_are_completed(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    client = AdminClient(admin)
    for name in ("completed-a", "completed-b"):
        client.send("PUT", f"/api/queues/%2F/{name}", {"durable": True})
    client.send("PUT", "/api/vhosts/completed", {})
    client.send("PUT", "/api/users/completer", {"password": "x", "tags": ""})
    assert complete("lmq queue purge completed-", admin) == ["completed-a", "completed-b"]
    assert complete("lmq queue purge completed-", admin, "fish") == ["completed-a", "completed-b"]
    zsh = complete("lmq queue purge completed-", admin, "zsh")
    assert [name for name in ("completed-a", "completed-b") if f'"{name}"' in " ".join(zsh)] != []
    named = f"lmq --url http://{admin} queue purge completed-"
    assert complete(named, "127.0.0.1:1", "fish") == ["completed-a", "completed-b"]
    assert complete("lmq consume completed-", admin) == ["completed-a", "completed-b"]
    assert complete("lmq vhost delete comp", admin) == ["completed"]
    assert complete("lmq queue purge x --vhost comp", admin) == ["completed"]
    assert complete("lmq user delete compl", admin) == ["completer"]
    assert complete("lmq user disable compl", admin) == ["completer"]
    assert complete("lmq user enable compl", admin) == ["completer"]
    assert complete("lmq grant compl", admin) == ["completer"]
    client.send("PUT", "/api/lmq/rules/completed", {"permit": "allow"})
    assert complete("lmq rule remove comp", admin) == ["completed"]
    assert complete("lmq rule move x --before comp", admin) == ["completed"]
    client.send("DELETE", "/api/lmq/rules/completed")
    client.send("POST", "/api/lmq/tokens", {"name": "completed", "scopes": ["read"], "ends_in_s": 60})
    assert complete("lmq token revoke comp", admin) == ["completed"]
    client.send("DELETE", "/api/lmq/tokens/completed")
    for path in ("/api/queues/%2F/completed-a", "/api/queues/%2F/completed-b", "/api/vhosts/completed"):
        client.send("DELETE", path)
    client.send("DELETE", "/api/users/completer")


def test_what_is_shown_is_completed(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    client = AdminClient(admin)
    filters = ("$share/completed/a", "$share/completed/b")
    with stayed(running, "completed-device", *filters):
        for line in ("device", "sessions show", "subscriptions show", "session end"):
            assert complete(f"lmq {line} completed", admin) == ["completed-device"]
        assert complete("lmq groups show comp", admin) == ["completed"]
    paho.mqtt.publish.single("completed/kept", "x", qos=1, retain=True, port=running.port("mqtt"))
    assert complete("lmq retained show comp", admin) == ["completed/kept"]
    client.send("PUT", "/api/exchanges/%2F/completed-x", {"type": "fanout"})
    client.send("PUT", "/api/queues/%2F/completed-q", {"durable": True})
    for line in ("exchanges show", "bindings show"):
        assert complete(f"lmq {line} comp", admin) == ["completed-x"]
    assert complete("lmq bindings show completed-x completed-", admin) == ["completed-q"]
    assert call_lmq("publish", "completed", "x", "--delay", "3600", *at(running, "rocketmq")).exit_code == 0
    (waiting,) = client.get("/api/lmq/delayed", {"name": "completed"}, as_member=True)["items"]
    assert complete(f"lmq delayed cancel {waiting['id'][:-1]}", admin, "fish") == [waiting["id"]]
    assert call_lmq("delayed", "cancel", waiting["id"], "--admin", admin).exit_code == 0
    for path in ("exchanges/%2F/completed-x", "queues/%2F/completed-q"):
        client.send("DELETE", f"/api/{path}")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("lmq user dis", ["disable"]),
        ("lmq token ", ["add", "list", "revoke"]),
        ("lmq user --w", ["--watch"]),
        ("lmq user list --w", ["--watch"]),
        ("lmq user --json --w", ["--watch"]),
        ("lmq config sh", ["show"]),
    ],
)
def test_commands_of_a_group_and_the_options_of_its_list_are_completed(line, found):
    assert complete(line, "127.0.0.1:1") == found


@pytest.mark.parametrize("admin", ["127.0.0.1:1", "http://", "ftp://nowhere"])
def test_a_gateway_that_is_not_there_completes_nothing_and_says_nothing(admin):
    assert complete("lmq queue purge a", admin) == []
