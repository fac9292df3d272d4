from __future__ import annotations

import json
import re
import socket

import pika
import pytest

from gateway.commands.explain import explained, publish_lines, queue_lines
from tests.support.commands import call_lmq, check_told


@pytest.mark.slow
def test_explain_asks_the_running_gateway(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    result = call_lmq("explain", "topic", "x/y/z", "--admin", f"http://{admin}/")
    assert result.stdout.startswith("x/y/z is stored once on LMQ_PARENT and reaches 0 light queues")
    found = json.loads(call_lmq("explain", "topic", "x/y/z", "--admin", admin, "--json").stdout)
    assert found == {"topic": "x/y/z", "parent_topic": "LMQ_PARENT", "queues": []}


def test_explained_queues_are_listed_with_filters_and_readers():
    queue = {
        "name": "%LMQ%mqtt%q",
        "filters": ["a/+", "a/#"],
        "bindings": [],
        "subscriptions": 3,
        "readers": 2,
        "called": "",
    }
    other = {**queue, "name": "%LMQ%amqp%|2f%q", "bindings": ["amq.topic a.*", "amq.topic a.#"], "max_offset": 0}
    other["called"] = "queue 'q' in vhost '/'"
    found = {"topic": "a/b", "parent_topic": "LMQ_PARENT", "queues": [{**queue, "max_offset": 7}, other]}
    assert explained(found) == [
        "a/b is stored once on LMQ_PARENT and reaches 2 light queues",
        "  %LMQ%mqtt%q",
        "    filters: a/+, a/#",
        "    subscriptions: 3  readers: 2  next: 7",
        "  %LMQ%amqp%|2f%q (queue 'q' in vhost '/')",
        "    filters: a/+, a/#",
        "    bindings: amq.topic a.*, amq.topic a.#",
        "    subscriptions: 3  readers: 2  next: 0",
    ]
    assert explained({**found, "queues": [other]})[0].endswith("reaches 1 light queue")


def test_explained_exchange_is_named_with_its_kind_and_the_key():
    question = {"exchange": "jobs", "kind": "direct", "routing_key": "new", "topic": "new"}
    question |= {"vhost": "plant", "is_topic_space": False}
    queue = {"name": "%LMQ%amqp%|2f%q", "filters": [], "bindings": ["jobs new"], "subscriptions": 1, "readers": 0}
    queue["called"] = "queue 'q' in vhost 'plant'"
    found = {**question, "parent_topic": "LMQ_PARENT", "queues": [{**queue, "max_offset": 7}]}
    assert explained(found) == [
        (
            "routing key 'new' on direct exchange 'jobs' in vhost 'plant' is stored once on LMQ_PARENT and reaches "
            "1 light queue"
        ),
        "  %LMQ%amqp%|2f%q (queue 'q' in vhost 'plant')",
        "    bindings: jobs new",
        "    subscriptions: 1  readers: 0  next: 7",
    ]


def test_what_an_exchange_leads_nowhere_is_said_to_be_dropped():
    question = {"exchange": "jobs", "kind": "direct", "routing_key": "odd", "topic": "odd"}
    question |= {"vhost": "/", "is_topic_space": False}
    found = {**question, "parent_topic": "LMQ_PARENT", "queues": []}
    assert explained(found) == [
        (
            "routing key 'odd' on direct exchange 'jobs' leads to no queue: a message is confirmed and dropped, "
            "one that is mandatory comes back"
        )
    ]
    assert "is stored once" in explained({**found, "exchange": "amq.topic", "is_topic_space": True})[0]


@pytest.mark.slow
def test_explain_asks_for_an_exchange(running):
    url = "amqp://guest:guest@{}:{}/".format(*running.address("amqp"))
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.exchange_declare("jobs")
        channel.queue_declare("work")
        channel.queue_bind("work", "jobs", "new")
    admin = f"127.0.0.1:{running.port('admin')}"
    assert (
        "    bindings: jobs new" in call_lmq("explain", "exchange", "jobs", "new", "--admin", admin).stdout.splitlines()
    )
    result = call_lmq("explain", "exchange", "", "work", "--admin", admin)
    assert result.stdout.startswith(
        "routing key 'work' on direct exchange '' is stored once on LMQ_PARENT and reaches 1"
    )
    none = call_lmq("explain", "exchange", "none", "--admin", admin)
    check_told(none, "^lmq: no exchange 'none' in vhost '/'$", code=4)
    other = call_lmq("explain", "exchange", "jobs", "new", "--vhost", "none", "--admin", admin)
    check_told(other, "^lmq: no vhost 'none'$", code=4)
    none = call_lmq("explain", "publish", "--exchange", "none", "--admin", admin)
    check_told(none, "^lmq: no exchange 'none' in vhost '/'$", code=4)


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["a/+/b", "a/#", "#"])
def test_explain_refuses_a_filter_in_one_line(running, topic):
    result = call_lmq("explain", "topic", topic, "--admin", f"127.0.0.1:{running.port('admin')}")
    check_told(result, f"^lmq: {re.escape(topic)} is a filter, with \\+ or #: a message has a topic without them")
    assert result.stdout == ""


def test_explain_without_a_gateway_says_so():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        admin = f"127.0.0.1:{free.getsockname()[1]}"
        check_told(call_lmq("explain", "topic", "a", "--admin", admin), "cannot ask the gateway", code=6)
    check_told(call_lmq("explain", "topic", "a", "--admin", "ftp://nowhere"), "not an http address")
    check_told(call_lmq("explain", "topic", "a", "--admin", "nowhere:port"), "no address: Port .* 'port'")


PUBLISH = {
    "vhost": "/",
    "is_topic_space": False,
    "exchange": "in",
    "kind": "topic",
    "routing_key": "a.b",
    "topic": "a/b",
    "parent_topic": "LMQ_PARENT",
    "queues": [],
    "waits_ms": 0,
    "exchanges": [{"name": "in", "kind": "topic", "by": ""}, {"name": "out", "kind": "direct", "by": "in a.#"}],
    "is_allowed": None,
    "verdict": "",
    "shown": {"amqp": {"exchange": "in", "routing_key": "a.b", "header h": "1"}},
    "queue": None,
    "why_not": [],
    "notes": ["exchange 'out' has the alternate 'alt', which is not there"],
}


def test_a_publish_is_told_with_its_exchanges_and_what_doors_show():
    assert publish_lines(PUBLISH)[1:] == [
        "  passes topic exchange 'in'",
        "  passes direct exchange 'out' by in a.#",
        "  exchange 'out' has the alternate 'alt', which is not there",
        "  as amqp shows it",
        "    exchange: in",
        "    routing_key: a.b",
        "    header h: 1",
    ]


def test_a_publish_is_told_with_the_verdict_the_wait_and_why_a_queue_does_not_get_it():
    more = {"is_allowed": False, "verdict": "user 'u' may not", "queue": "q", "why_not": ["it is not bound"]}
    lines = publish_lines({**PUBLISH, **more, "waits_ms": 5, "shown": {}})
    assert lines[1] == "  it waits 5 ms first"
    assert lines[5:] == ["  refused: user 'u' may not", "  queue 'q' does not get it", "    it is not bound"]
    assert publish_lines({**PUBLISH, "queue": "q"})[-1] == "  queue 'q' gets it"


def test_a_wait_on_one_of_the_ways_is_told_with_where_it_is():
    passed = [
        {"name": "in", "kind": "topic", "by": ""},
        {"name": "late", "kind": "x-delayed-message", "by": "in a.#"},
        {"name": "further", "kind": "x-delayed-message", "by": "in a.# > late (waits 5 ms) b"},
    ]
    lines = publish_lines({**PUBLISH, "waits_ms": 5, "shown": {}, "exchanges": passed})
    assert lines[1] == "  it waits 5 ms at exchange 'late', and goes on at once by its other ways"
    assert "further" not in lines[2]


def test_a_queue_is_told_with_the_ways_there():
    found = {
        "name": "q",
        "vhost": "/",
        "light_queue": "%LMQ%amqp%|2f%q",
        "levels": ["%LMQ%amqp%|y3%|2f%q"],
        "arguments": {"x-max-length": 5},
        "bindings": ["(default) q", "in a.# > out a.b"],
        "filters": ["a/#"],
        "policy": "short",
        "operator_policy": None,
        "ruled": {"max-length": 3},
        "dead_letters": "dead",
        "readers": 1,
        "ready": 2,
        "unacked": 3,
        "first_offset": 4,
        "next_offset": 9,
    }
    assert queue_lines(found) == [
        "queue 'q' of vhost '/' is the light queue %LMQ%amqp%|2f%q",
        "  and of further priorities: %LMQ%amqp%|y3%|2f%q",
        "  x-max-length: 5",
        "  policy: short",
        "  ruled: max-length = 3",
        "  from: (default) q",
        "  from: in a.# > out a.b",
        "  filters: a/#",
        "  dead letters to: dead",
        "  ready: 2  unacknowledged: 3  readers: 1  offsets: 4 to 9",
    ]


@pytest.mark.slow
def test_explain_asks_of_publishes_and_queues(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    asked = ("--exchange", "amq.headers", "--header", "a=1", "--header", "b=x", "--queue", "none", "--as", "guest")
    said = call_lmq("explain", "publish", *asked, "--admin", admin).stdout
    assert "no queue 'none' in vhost '/'" in said
    assert "header b: x" in said
    said = call_lmq("explain", "queue", "none", "--admin", admin)
    assert "no queue 'none' in vhost '/'" in said.stdout + said.stderr


def test_an_empty_topic_is_refused_in_words():
    check_told(call_lmq("explain", "topic", ""), "^lmq: the topic is empty")


def test_a_publish_of_nothing_is_told_what_is_missing():
    check_told(call_lmq("explain", "publish"), "^lmq: say what is published: --topic plant/1/temp, or for AMQP --key")
    both = call_lmq("explain", "publish", "--topic", "a/b", "--exchange", "x", "--key", "b")
    check_told(both, "^lmq: --exchange and --key are for AMQP, and --topic is for mqtt: leave one")
    check_told(call_lmq("explain", "publish", "--topic", "a/b", "--vhost", "v"), "^lmq: --vhost is for AMQP")
    both = call_lmq("explain", "publish", "--door", "amqp", "--topic", "a/b", "--key", "b")
    check_told(both, "^lmq: --topic is for MQTT and RocketMQ")
    check_told(call_lmq("explain", "publish", "--door", "mqtt"), "--exchange and --key are for AMQP, not mqtt")


@pytest.mark.slow
def test_explain_tells_whether_a_user_may_and_the_rule_that_decides(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("user", "add", "pia", "--new-password", "secret", *admin).exit_code == 0
    assert call_lmq("grant", "pia", "--all", *admin).exit_code == 0
    rule = ("no-pia", "deny", "--for-user", "pia", "--topic", "hidden/#", "--client", "dev-*")
    assert call_lmq("rule", "add", *rule, *admin).exit_code == 0
    question = ("explain", "right", "subscribe", "hidden/1", "--as", "pia", *admin)
    told = call_lmq(*question, "--client", "dev-1").stdout
    assert told == "refused: user 'pia' may not subscribe to filter 'hidden/1' by rule 'no-pia'\n"
    assert call_lmq(*question).stdout.startswith(
        "allowed: user 'pia' may subscribe to filter 'hidden/1' by permissions"
    )
    found = json.loads(call_lmq(*question, "--client", "dev-1", "--json").stdout)
    assert (found["is_allowed"], found["by"]) == (False, "rule 'no-pia'")
    told = call_lmq("explain", "right", "enter", "--vhost", "none", "--as", "pia", "--door", "amqp", *admin).stdout
    assert told == "refused: user 'pia' may not use vhost 'none' by permissions of the user\n"
    check_told(call_lmq("explain", "right", "read", *admin), "^lmq: read needs a topic")
    assert call_lmq("rule", "remove", "no-pia", *admin).exit_code == 0
    assert call_lmq("user", "delete", "pia", "--yes", *admin).exit_code == 0
