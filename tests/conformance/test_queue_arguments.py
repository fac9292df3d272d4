"""What the door says of each argument of a queue is what RabbitMQ says, or differs for a reason."""

from __future__ import annotations

import json

import pytest
from pamqp.commands import Channel, Queue

from tests.conformance.amqp_steps import show
from tests.conformance.queue_arguments import CASES, declaration
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.engines import MAKERS
from tests.support.sources import ROOT

RECORDED = json.loads((ROOT / "tests/data/rabbitmq-3.10.8/arguments.json").read_text())


@pytest.fixture(scope="module", params=MAKERS)
def replies(request, tmp_path_factory):
    """Give the door's replies, as `record_rabbitmq.declare_all` does RabbitMQ's."""
    world = AmqpWorld(tmp_path_factory.mktemp("amqp"), make_engine=MAKERS[request.param])
    found = {}
    peer = world.client()
    for case in CASES:
        peer.write(declaration(case))
        lines = [show(*one) for one in amqp.decode_frames(bytes(peer.transport.sent))]
        peer.transport.sent.clear()
        found[case] = lines[0]
        if "channel.close" in lines[0]:
            peer.send(Channel.CloseOk(), Channel.Open()).take()
        elif "connection.close" in lines[0]:
            peer = world.client()
        else:
            peer.call(Queue.Delete(queue="q"))
    world.close()
    return found


def test_every_declaration_was_recorded():
    assert RECORDED.keys() == CASES.keys()


def reason_to_differ(case):
    """Return why the door says something else, None where it has no reason to."""
    kind, name, label = CASES[case]
    if name in {"x-quorum-target-group-size", "x-stream-filter-size-bytes", "x-consumer-timeout"}:
        return "RabbitMQ 4 knows it, and says of it what is said of the like"
    if (kind, name) == ("classic", "x-queue-leader-locator"):
        return "RabbitMQ 4 takes it"
    if name == "x-delivery-limit" and label in {"text", "true", "double", "void", "array", "table"}:
        return "RabbitMQ 4 checks it"
    if RECORDED[case].startswith("0 connection.close 541"):
        return "RabbitMQ fails; what it would have said is what it says of the like"
    return None


def test_the_door_says_what_rabbitmq_says(replies):
    differ = {case: (replies[case], RECORDED[case]) for case in CASES if replies[case] != RECORDED[case]}
    assert {case: said for case, said in differ.items() if reason_to_differ(case) is None} == {}


def test_what_rabbitmq_fails_at_is_refused(replies):
    failed = [case for case in CASES if RECORDED[case].startswith("0 connection.close 541")]
    assert failed
    assert all(replies[case].startswith("1 channel.close 406") for case in failed)
