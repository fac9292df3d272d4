from __future__ import annotations

import zlib

import pytest

from lmq.message import Message
from lmq.remoting.commands import Command
from lmq.replies import Replies, properties_of_reply, topic_of_reply

pytestmark = pytest.mark.asyncio
REQUEST = Message("T", b"", {"CORRELATION_ID": "7", "REPLY_TO_CLIENT": "me", "CLUSTER": "C"}, "T", 0, 0, 0, 0, 0, b"")


def pushed(number: str, body: bytes, **ext: str) -> Command:
    properties = f"CORRELATION_ID\x01{number}\x02unit\x01C\x02"
    return Command(
        326, ext={"topic": "C_REPLY_TOPIC", "properties": properties, "storeTimestamp": "5"} | ext, body=body
    )


async def test_a_reply_finds_the_request_that_waits_for_it():
    replies = Replies("me")
    (first, one), (second, other) = replies.expect(3), replies.expect(3)
    assert (first["REPLY_TO_CLIENT"], first["TTL"]) == ("me", "3000")
    assert replies.take("s", pushed(second["CORRELATION_ID"], b"hi")).code == 0
    assert not one.done()
    reply = other.result()
    assert (reply.body, reply.properties["unit"], reply.store_ms) == (b"hi", "C", 5)


async def test_a_reply_that_nobody_waits_for_is_taken():
    replies = Replies("me")
    properties, waiting = replies.expect(3)
    replies.forget(properties)
    assert replies.take("s", pushed(properties["CORRELATION_ID"], b"late")).code == 0
    assert replies.take("s", Command(326)).code == 0
    assert not waiting.done()


async def test_compressed_replies_are_inflated_and_damaged_ones_are_refused():
    replies = Replies("me")
    properties, waiting = replies.expect(3)
    number = properties["CORRELATION_ID"]
    assert replies.take("s", pushed(number, b"junk", sysFlag="1")).code == 1
    assert replies.take("s", pushed(number, zlib.compress(b"x" * 9000), sysFlag="1")).code == 0
    assert waiting.result().body == b"x" * 9000


async def test_a_reply_says_what_it_answers():
    assert topic_of_reply(REQUEST) == "C_REPLY_TOPIC"
    said = properties_of_reply(REQUEST)
    assert (said["CORRELATION_ID"], said["REPLY_TO_CLIENT"], said["MSG_TYPE"]) == ("7", "me", "reply")


@pytest.mark.parametrize("missing", ["CORRELATION_ID", "REPLY_TO_CLIENT", "CLUSTER"])
async def test_a_message_that_is_no_request_has_no_reply(missing):
    properties = {name: value for name, value in REQUEST.properties.items() if name != missing}
    with pytest.raises(ValueError, match="not a request"):
        properties_of_reply(Message("T", b"", properties, "T", 0, 0, 0, 0, 0, b""))
