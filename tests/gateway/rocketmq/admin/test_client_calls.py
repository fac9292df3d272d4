from __future__ import annotations

import pytest

from gateway.rocketmq.calls import CALL_MS
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command, answer, encode_command
from tests.support.rocketmq_door import records_of
from tests.support.rocketmq_tools import Stranger, ask_tool, join, start_tool, take_answer


def reply(consumer, code=0, body=b"", remark=None):
    """Let a client answer what it was asked; return what that was."""
    (asked,) = consumer.take()
    consumer.give(encode_command(answer(asked, code, remark, body=body)))
    return asked


def test_a_client_tells_of_itself(site, peer):
    consumer = join(site, "c1")
    start_tool(peer, 307, consumerGroup="g", clientId="c1", jstackEnable="true")
    asked = reply(consumer, body=b'{"properties":{}}')
    assert (asked.code, asked.ext["jstackEnable"]) == (307, "true")
    assert bytes(take_answer(peer).body) == b'{"properties":{}}'


def test_a_client_consumes_one_message_again(site, peer):
    message_id = peer.send(b"again").ext["msgId"]
    consumer = join(site, "c1")
    start_tool(peer, 309, consumerGroup="g", clientId="c1", msgId=message_id)
    site.turn()
    asked = reply(consumer, body=b'{"consumeResult":"CR_SUCCESS"}')
    assert asked.ext["brokerName"] == "lmq"
    assert records_of(asked)[0].body == b"again"
    assert bytes(take_answer(peer).body) == b'{"consumeResult":"CR_SUCCESS"}'
    for wrong in ("F" * 32, "x" * 32, ""):
        assert ask_tool(peer, 309, consumerGroup="g", clientId="c1", msgId=wrong).code == 1


def test_a_refusal_and_silence_of_a_client_are_handed_on(site, peer):
    consumer = join(site, "c1")
    start_tool(peer, 307, consumerGroup="g", clientId="c1")
    reply(consumer, code=1, remark="no such group here")
    assert take_answer(peer).remark == "no such group here"
    start_tool(peer, 307, consumerGroup="g", clientId="c1")
    site.door.calls.expire(site.now_ms + CALL_MS)
    assert take_answer(peer).code == 207
    start_tool(peer, 307, consumerGroup="g", clientId="c1")
    consumer.close()
    assert take_answer(peer).code == 207
    gone = ask_tool(peer, 307, consumerGroup="g", clientId="c1")
    assert (gone.code, gone.remark) == (1, "The Consumer <g> <c1> not online")


def test_all_clients_tell_how_far_they_are(site, peer):
    one, two = join(site, "c1"), join(site, "c2")
    one.take()
    start_tool(peer, 223, topic="T", group="g")
    assert reply(two, body=b'{"messageQueueTable":{{"topic":"T"}:5}}').code == 221
    reply(one, code=1)
    assert bytes(take_answer(peer).body) == b'{"consumerTable":{"c2":{{"topic":"T"}:5}}}'
    assert ask_tool(peer, 223, topic="T", group="none").code == 1


def test_who_may_not_configure_asks_no_client(site):
    consumer = join(site, "c1")
    for code in (307, 309, 223):
        request = Command(code, ext={"consumerGroup": "g", "group": "g", "topic": "T", "clientId": "c1", "msgId": "x"})
        with pytest.raises(CommandRefusedError) as caught:
            site.door.tools.ask(request, Stranger(), "h:1", site.now_ms)
        assert caught.value.code == 16
    assert consumer.take() == []
