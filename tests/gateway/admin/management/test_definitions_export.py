from __future__ import annotations

from gateway.admin.management.definitions_export import tell_definitions
from gateway.amqp.exchanges import Exchange
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import HeaderMatch
from gateway.amqp.host_profile import QUEUES_MAX, HostProfile


def told(world):
    found = {}
    for told in tell_definitions(world.amqp.vhosts):
        if told is not None:
            found.setdefault(told[0], []).append(told[1])
    return found


def test_what_is_durable_is_told_as_rabbitmq_does(world):
    vhost = world.amqp.vhosts.make("v", HostProfile("of the plant", ("a",)).with_limit(QUEUES_MAX, 9))
    headers = Exchange("h", "headers", durable=True, auto_delete=False, internal=True, alternate="amq.fanout")
    vhost.add_exchange(headers)
    arguments = {"x-max-length": Field("long", 5), "x-dead-letter-exchange": Field("longstr", b"h")}
    vhost.add("q", durable=True, auto_delete=False, owner=None, arguments=arguments)
    vhost.bind(headers, ("q", "", HeaderMatch("any", (("n", "int", 1), ("t", "longstr", b"x")))))
    vhost.bind(vhost.exchanges.get("amq.topic"), (headers, "a.*", None))
    found = told(world)
    assert found["vhosts"][1] == {
        "name": "v", "description": "of the plant", "tags": ["a"],
        "metadata": {"description": "of the plant", "tags": ["a"]},
    }  # fmt: skip
    limits = {"component": "vhost-limits", "name": "limits", "value": {"max-queues": 9}, "vhost": "v"}
    assert found["parameters"] == [limits]
    assert found["queues"] == [
        {
            "name": "q", "vhost": "v", "type": "classic", "durable": True, "auto_delete": False,
            "arguments": {"x-max-length": 5, "x-dead-letter-exchange": "h"},
        }
    ]  # fmt: skip
    assert found["exchanges"] == [
        {
            "name": "h", "vhost": "v", "type": "headers", "durable": True, "auto_delete": False, "internal": True,
            "arguments": {"alternate-exchange": "amq.fanout"},
        }
    ]  # fmt: skip
    assert sorted(found["bindings"], key=lambda one: one["source"]) == [
        {
            "source": "amq.topic", "vhost": "v", "destination": "h", "destination_type": "exchange",
            "routing_key": "a.*", "arguments": {},
        },
        {
            "source": "h", "vhost": "v", "destination": "q", "destination_type": "queue", "routing_key": "",
            "arguments": {"x-match": "any", "n": 1, "t": "x"},
        },
    ]  # fmt: skip


def test_what_ends_with_its_users_is_left_out(world):
    vhost = world.amqp.vhost
    vhost.add_exchange(Exchange("x", "fanout", durable=False, auto_delete=False, internal=False))
    for name, options in (
        ("mine", {"durable": True, "owner": object()}),
        ("passing", {"durable": False, "owner": None}),
    ):
        vhost.add(name, auto_delete=False, arguments={}, **options)
        vhost.bind(vhost.exchanges.get("amq.topic"), (name, "#", None))
    vhost.add("kept", durable=True, auto_delete=True, owner=None, arguments={})
    vhost.bind(vhost.exchanges.get("x"), ("kept", "", None))
    found = told(world)
    assert [queue["name"] for queue in found["queues"]] == ["kept"]
    assert found.keys() == {"vhosts", "queues"}
