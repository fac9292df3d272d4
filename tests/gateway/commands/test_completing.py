from __future__ import annotations

import time

import paho.mqtt.client as mqtt
import pytest

from gateway.commands.client import AdminClient
from tests.support.commands import call_lmq

pytestmark = pytest.mark.slow


def complete(line, admin, shell="bash"):
    """Return what a shell would be given for a line."""
    env = {"_LMQ_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    others = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return call_lmq(env={**env, **others, "LMQ_CLI_ADMIN": admin}).stdout.split()


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
    host, port = running.address("mqtt")
    device = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "completed-device", clean_session=False)
    device.connect(host, port)
    device.loop_start()
    while not device.is_connected():
        time.sleep(0.001)  # noqa: TID251 - the client runs on a thread of its own
    assert complete("lmq device completed", admin) == ["completed-device"]
    device.disconnect()
    device.loop_stop()
    for path in ("/api/queues/%2F/completed-a", "/api/queues/%2F/completed-b", "/api/vhosts/completed"):
        client.send("DELETE", path)
    client.send("DELETE", "/api/users/completer")


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


def test_a_gateway_that_is_not_there_completes_nothing_and_says_nothing():
    assert complete("lmq queue purge a", "127.0.0.1:1") == []
