"""Types of queues: what each may be told, and which one is declared where nothing is said of it."""

from __future__ import annotations

import pytest
from pamqp.commands import Queue

from gateway.amqp.host_profile import HostProfile
from gateway.amqp.queue_arguments import type_of

QUORUM = {"x-queue-type": "quorum"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"durable": False}, "invalid property 'non-durable' for queue 'r' in vhost '/'"),
        ({"auto_delete": True}, "invalid property 'auto-delete' for queue 'r' in vhost '/'"),
        ({"exclusive": True}, "invalid property 'exclusive-owner' for queue 'r' in vhost '/'"),
        (
            {"arguments": {**QUORUM, "x-queue-mode": "lazy"}},
            "invalid arg 'x-queue-mode' for queue 'r' in vhost '/' of queue type rabbit_quorum_queue",
        ),
        (
            {"arguments": {"x-delivery-limit": 1}},
            "invalid arg 'x-delivery-limit' for queue 'r' in vhost '/' of queue type rabbit_classic_queue",
        ),
        (
            {"arguments": {**QUORUM, "x-delivery-limit": -2}},
            "invalid arg 'x-delivery-limit' for queue 'r' in vhost '/': {value_negative,-2}",
        ),
    ],
)
def test_a_quorum_queue_that_cannot_be_is_refused(world, options, text):
    close = world.client().declare("r", **{"durable": True, "arguments": QUORUM, **options})
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


def test_a_quorum_queue_is_one_after_a_restart_and_no_classic_one(world):
    said = {**QUORUM, "x-quorum-initial-group-size": 3, "x-queue-leader-locator": "balanced", "x-max-length": 9}
    peer = world.client(channels=3)
    peer.declare("q", durable=True, arguments=said)
    world.close()
    world.open()
    peer = world.client(channels=3)
    assert peer.declare("q", durable=True, arguments=said).queue == "q"
    start = "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': "
    others = {name: value for name, value in said.items() if name != "x-queue-type"}
    for channel, kind in ((1, {}), (2, {"x-queue-type": "classic"})):
        said = {name: value for name, value in others.items() if not name.startswith("x-quorum")}
        close = peer.declare("q", channel, durable=True, arguments={**said, **kind})
        assert close.reply_text.startswith(start)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"durable": True}, "quorum"),
        ({"durable": True, "arguments": {"x-queue-type": "classic"}}, "classic"),
        ({"durable": True, "arguments": {"x-queue-type": "stream"}}, "stream"),
        ({"durable": False}, "classic"),
        ({"durable": True, "exclusive": True}, "classic"),
        ({"durable": True, "auto_delete": True}, "classic"),
    ],
)
def test_queue_is_of_the_type_that_its_virtual_host_says_where_it_may_be(world, options, kind):
    world.amqp.vhosts.make("v", HostProfile(queue_type="quorum"))
    peer = world.client(vhost="v")
    for _ in range(2):
        assert isinstance(peer.declare("q", **options), Queue.DeclareOk)
    assert type_of(world.amqp.vhosts.find("v").find("q").arguments) == kind


def test_queue_of_another_type_than_the_default_is_declared_with_it(world):
    vhost = world.amqp.vhosts.make("v")
    world.client(vhost="v").declare("q", durable=True)
    vhost.profile = vhost.profile._replace(queue_type="quorum")
    close = world.client(vhost="v").declare("q", durable=True)
    assert close.reply_text == (
        "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost 'v': "
        "received the value 'quorum' of type 'longstr' but current is none"
    )
    said = {"x-queue-type": "classic"}
    assert isinstance(world.client(vhost="v").declare("q", durable=True, arguments=said), Queue.DeclareOk)


def test_queue_that_says_it_is_classic_is_told_so_and_declared_without(world):
    vhost = world.amqp.vhosts.make("v")
    peer = world.client(vhost="v", channels=2)
    said = {"x-queue-type": "classic"}
    for arguments in (said, {}, said):
        assert isinstance(peer.declare("q", durable=True, arguments=arguments), Queue.DeclareOk)
    assert {name: field.text for name, field in vhost.find("q").arguments.items()} == said
    vhost.profile = vhost.profile._replace(queue_type="quorum")
    close = peer.declare("q", 2, durable=True)
    assert close.reply_text == (
        "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost 'v': "
        "received 'quorum' but current is 'classic'"
    )
