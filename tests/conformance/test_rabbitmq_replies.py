"""The door's replies to the exchanges of `amqp_exchanges.py` are RabbitMQ's, word for word, or differ for a reason."""

from __future__ import annotations

import json

import pytest
from pamqp.commands import Exchange, Queue

from tests.conformance.amqp_exchanges import EXCHANGES
from tests.conformance.amqp_steps import show, steps_of
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.engines import MAKERS
from tests.support.late_engine import LateEngine
from tests.support.sources import ROOT

RECORDED = json.loads((ROOT / "tests/data/rabbitmq-3.10.8/replies.json").read_text())
DECLARED = "1 queue.declareok q 0 0"
CONSUMING = "1 basic.consumeok c"
CLOSED = "1 channel.close 406 60/80 PRECONDITION_FAILED - unknown delivery tag 5"
HARD = "0 connection.close "
REFUSED = "1 channel.close 406 50/10 PRECONDITION_FAILED - invalid arg '{}' for queue 'q' in vhost '/': {}"
FRAME = f"{HARD}501 {{}} FRAME_ERROR - {{}}"

# What differs, each with the replies of the door.
AS_RABBITMQ_4 = {
    "declare of an unknown type": [
        "1 channel.close 406 40/10 PRECONDITION_FAILED - unknown exchange type 'x-odd'",
    ],
    "content larger than any": [
        FRAME.format("60/40", f"content body size {2**40} exceeds maximum allowed size 536870912"),
    ],
    "content longer than its header says": [
        FRAME.format("60/40", "content body frame exceeds remaining content size"),
    ],
    "cancel-ok of a deleted consumer": [
        DECLARED, CONSUMING, "1 queue.deleteok 0", "1 basic.cancel c True", "1 basic.qosok"
    ],
}  # fmt: skip
KINDER = {  # what belongs to a channel that is closing, or closed, costs nobody anything
    "closed by us": RECORDED["closed by us"],
    "closed by both, late answer": [CLOSED, "1 channel.closeok", "1 channel.openok", "1 basic.qosok"],
    "closed by us, used before the answer": [CLOSED, "1 channel.openok"],
    "close-ok late": ["1 channel.closeok", "2 channel.openok"],
    "close-ok twice": [CLOSED, "1 channel.openok"],
}
NOT_SUPPORTED = {  # an argument that would not do what it says is refused
    "queue mode: gone": [DECLARED, DECLARED],  # it means nothing here
    "key that is no text": [FRAME.format("0/0", "Malformed UTF-8 in shortstr")],
}  # fmt: skip
BOUNDED = {  # RabbitMQ bounds tables by the frame alone
    "table 100 deep": None,
    "table of 40,000 fields": [
        f"{HARD}502 50/10 SYNTAX_ERROR - a table in queue.declare has more than 256 fields",
    ],
}
TOLD = {  # where RabbitMQ hangs up without a word
    "table of an unknown type": [FRAME.format("50/10", "cannot decode <<0,0,1,113,4,0,0,0,4,1,97,90,0>>")],
    "table with a value that is longer": [
        FRAME.format("50/10", "cannot decode <<0,0,1,113,4,0,0,0,7,1,97,83,0,0,0,255>>"),
    ],
    "unknown method": [f"{HARD}503 0/0 COMMAND_INVALID - unknown method 60.255"],
}
OTHER_ORDER = {  # deliveries are made at the end of the turn; RabbitMQ's race the answer
    "commit of a publish": [
        DECLARED, "1 tx.selectok", CONSUMING, "1 tx.commitok", "1 basic.deliver c 1 False  q", "1 header 1", "1 body"
    ],
}  # fmt: skip
MORE = {  # RabbitMQ reads only queues of the type stream so, and quorum queues by the prefetch of a consumer
    "consume from an offset": [DECLARED, "1 basic.consumeok c"],
    "quorum queue and the prefetch of the channel": RECORDED["quorum queue and no prefetch of the channel"],
}
DIFFERENT = {**AS_RABBITMQ_4, **KINDER, **NOT_SUPPORTED, **BOUNDED, **TOLD, **OTHER_ORDER, **MORE}


# A commit is answered with the outcome of its messages, which consumers may have before that.
ANSWERED_LATE = {"commit of a publish"}


@pytest.fixture(scope="module", params=MAKERS)
def world(request, tmp_path_factory):
    world = AmqpWorld(tmp_path_factory.mktemp("amqp"), make_engine=MAKERS[request.param])
    yield world
    world.close()


def have(world, exchange):
    """Return the door's replies, as `record_rabbitmq.have` does RabbitMQ's."""
    world.client().send(Queue.Delete(queue="q"), Exchange.Delete(exchange="x"))
    peers = [world.client(), world.client()]
    lines = []
    for step in steps_of(exchange):
        peers[step.by_other].write(step.data)
        for peer, mark in zip(peers, ("", "other "), strict=True):
            lines += [mark + show(*one) for one in amqp.decode_frames(bytes(peer.transport.sent))]
            peer.transport.sent.clear()
    for peer in peers:
        peer.vanish()
    return lines


def test_every_exchange_was_recorded():
    assert RECORDED.keys() == EXCHANGES.keys()
    assert DIFFERENT.keys() <= EXCHANGES.keys()


@pytest.mark.parametrize("name", EXCHANGES)
def test_the_door_says_what_rabbitmq_says(world, name):
    replies = have(world, EXCHANGES[name])
    if name in ANSWERED_LATE and isinstance(world.engine, LateEngine):
        assert sorted(replies) == sorted(RECORDED[name])
    elif name not in DIFFERENT:
        assert replies == RECORDED[name]
    elif DIFFERENT[name] is not None:
        assert replies == DIFFERENT[name]
    else:
        assert replies[-1].startswith(FRAME.format("50/10", "cannot decode <<"))
