from __future__ import annotations

import json

import pytest

from gateway.commands.client import AdminClient
from tests.support.commands import at, call_lmq, check_told

pytestmark = pytest.mark.slow


@pytest.fixture
def lmq(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    return lambda *arguments, **options: call_lmq(*arguments, "--admin", admin, **options)


def test_bodies_that_are_no_text_say_so(running, lmq):
    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    client.send("PUT", "/api/queues/%2F/bytes", {"durable": True})
    sent = {"properties": {}, "routing_key": "bytes", "payload": "AP8=", "payload_encoding": "base64"}
    client.send("POST", "/api/exchanges/%2F/amq.default/publish", sent)
    assert "(base64) AP8=" in lmq("queue", "peek", "bytes").stdout


def test_a_queue_is_looked_into_moved_purged_and_deleted(running, lmq):

    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    for name in ("from", "to"):
        client.send("PUT", f"/api/queues/%2F/{name}", {"durable": True})
    amqp = at(running, "amqp")
    assert call_lmq("publish", "from", "hello", "--count", "3", "--header", "kind=a", *amqp).exit_code == 0
    peeked = lmq("queue", "peek", "from", "--count", "1").stdout
    assert "hello" in peeked
    assert "(default) from" in peeked
    assert " waits " in peeked
    found = json.loads(lmq("queue", "peek", "from", "--offset", "1", "--json").stdout)
    assert [one["offset"] for one in found] == [1, 2]
    told = lmq("message", found[0]["id"]).stdout
    assert "hello" in told
    assert "exchange         (default)" in told
    assert [one["offset"] for one in json.loads(lmq("queue", "peek", "from", "--undone", "--json").stdout)] == [0, 1, 2]
    check_told(
        lmq("queue", "peek", "from", "--undone", "--offset", "1"),
        "^lmq: give only one of --undone, --offset and --at",
        code=2,
    )
    beyond = lmq("queue", "peek", "from", "--offset", "99")
    assert (beyond.stdout, beyond.stderr) == ("", "lmq: 'from' has no message there: its offsets are 0 to 2\n")
    assert "its offset" not in lmq("queue", "peek", "from").stderr
    assert "it keeps none, the next one is at offset 0" in lmq("queue", "peek", "to").stderr
    assert len(json.loads(lmq("queue", "peek", "from", "--at", "2020-01-01", "--json").stdout)) == 3
    assert lmq("queue", "move", "from", "to", "--count", "1").stdout == "moved 1\n"
    assert json.loads(lmq("queue", "move", "from", "to", "--count", "1", "--json").stdout)["moved"] == 1
    check_told(lmq("queue", "move", "from"), "moved 0, 1 left: the gateway cannot tell where they died", code=2)
    check_told(lmq("queue", "delete", "to", "--if-empty"), "queue 'to' in vhost '/' not empty")
    check_told(lmq("queue", "purge", "to"), "^lmq: this deletes 2 messages of queue 'to'; add --yes to do it$")
    purged = lmq("queue", "purge", "to", "--yes", "--json")
    assert (purged.exit_code, json.loads(purged.stdout)) == (0, {"purged": "to", "vhost": "/"})
    assert lmq("queue", "purge", "to").exit_code == 0  # there is nothing to lose
    deleted = lmq("queue", "delete", "to", "--if-empty", "--json")
    assert (deleted.exit_code, json.loads(deleted.stdout)) == (0, {"deleted": "to", "vhost": "/"})
    check_told(lmq("queue", "delete", "from"), "^lmq: this deletes queue 'from' with 1 message; add --yes to do it$")
    assert lmq("queue", "delete", "from", "--yes").exit_code == 0
    check_told(lmq("queue", "delete", "from"), "^lmq: no queue 'from' in vhost '/'$", code=4)
    check_told(lmq("queue", "peek", "none"), "no queue is called 'none'", code=4)
    check_told(call_lmq("publish", "nobody", "hello", *amqp), "^lmq: the message reaches no queue$", code=3)


def test_letters_that_stay_are_told_with_an_exit_code(running, lmq):
    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "grave"}
    client.send("PUT", "/api/queues/%2F/grave", {"durable": True})
    for name in ("gone", "stays"):
        client.send("PUT", f"/api/queues/%2F/{name}", {"durable": True, "arguments": arguments})
        assert call_lmq("publish", name, "hello", *at(running, "amqp")).exit_code == 0
        reject = {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"}
        client.send("POST", f"/api/queues/%2F/{name}/get", reject)
    while client.ask("/api/queues/%2F/grave")["messages_ready"] < 2:
        pass
    client.send("DELETE", "/api/queues/%2F/gone")
    check_told(lmq("queue", "move", "grave"), "^lmq: moved 1, 1 left: no queue 'gone'$", code=3)


def test_what_came_to_a_queue_comes_once_more(running, lmq):
    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    for name in ("readings", "again"):
        client.send("PUT", f"/api/queues/%2F/{name}", {"durable": True})
    amqp = at(running, "amqp")
    for body in ("one", "two", "three"):
        assert call_lmq("publish", "readings", body, *amqp).exit_code == 0
    lmq("queue", "purge", "readings", "--yes")
    told = lmq("queue", "replay", "readings", "again", "--offset", "1", "--count", "1").stdout
    assert told == "replayed 1, the next is at offset 2\n"
    done = lmq("queue", "replay", "readings", "again", "--at", "-1h", "--json")
    assert json.loads(done.stdout) == {"replayed": 3, "left": 0, "next_offset": 3}
    bodies = [one["body"] for one in json.loads(lmq("queue", "peek", "again", "--offset", "0", "--json").stdout)]
    assert bodies == ["two", "one", "two", "three"]
    assert lmq("queue", "replay", "readings", "--offset", "2").stdout == "replayed 1, the next is at offset 3\n"
    assert client.ask("/api/queues/%2F/readings")["messages_ready"] == 1
    check_told(lmq("queue", "replay", "readings"), "^lmq: say an offset or a moment, one of the two$", code=2)
    check_told(lmq("queue", "replay", "none", "--offset", "0"), "^lmq: no queue 'none' in vhost '/'$", code=4)
    said = {"routing_key": "readings", "payload": "of ann", "payload_encoding": "string"}
    client.send("PUT", "/api/users/ann", {"password": "ann", "tags": "administrator"})
    client.send("PUT", "/api/permissions/%2F/ann", {"configure": ".*", "write": ".*", "read": ".*"})
    AdminClient(f"127.0.0.1:{running.port('admin')}", "ann", "ann").send(
        "POST", "/api/exchanges/%2F/amq.default/publish", said | {"properties": {"user_id": "ann"}}
    )
    client.send("DELETE", "/api/users/ann")  # other tests list the users
    left = lmq("queue", "replay", "readings", "again", "--offset", "4")
    check_told(left, "^lmq: replayed 0, the next is at offset 5; 1 left: only the user in a message's", code=3)


def test_dead_letters_of_a_group_are_sent_back_with_the_same_command(running, lmq):
    namesrv = ("--server", f"127.0.0.1:{running.port('namesrv')}", "--door", "rocketmq")
    for body in ("one", "two", "three"):
        assert call_lmq("publish", "%DLQ%packing", body, *namesrv).exit_code == 0
    assert "%DLQ%packing" in lmq("deadletters", "list").stdout
    assert lmq("queue", "move", "%DLQ%packing", "--count", "1").stdout == "moved 1\n"
    done = lmq("queue", "move", "%DLQ%packing", "--door", "rocketmq", "--json")
    assert json.loads(done.stdout) == {"moved": 2, "left": 0, "reasons": []}
    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    found = client.get("/api/lmq/messages", {"queue": "%RETRY%packing/0", "offset": 0}, as_member=True)
    assert [one["body"] for one in found["items"]] == ["one", "two", "three"]
    check_told(lmq("queue", "move", "%DLQ%none"), "^lmq: no topic '%DLQ%none'$", code=4)
    check_told(lmq("queue", "move", "%DLQ%packing", "--door", "amqp"), "^lmq: no queue '%DLQ%packing'", code=4)
