from __future__ import annotations

import pytest

from lmq.message import Message
from lmq.remoting.commands import answer
from lmq.remoting.message_codec import decode_properties
from lmq.send_back import SendBack
from tests.support.scripted_broker import routes_to, serve_topics

pytestmark = pytest.mark.asyncio
PROPERTIES = {"UNIQ_KEY": "K", "unit": "C", "DELAY": "4", "INNER_MULTI_DISPATCH": "%LMQ%a"}
MESSAGE = Message("T", b"body", PROPERTIES, "T", 1, 5, 99, 0, 0, b"", flag=7, reconsume_times=2, broker_name="b")


@pytest.fixture
def scripted(server):
    serve_topics(server)
    return server


def properties_of(request) -> dict[str, str]:
    return {k.decode(): v.decode() for k, v in decode_properties(request.ext["i"].encode()).items()}


@pytest.mark.parametrize(("retries_max", "said"), [(None, None), (3, "3"), (0, "0")])
async def test_the_broker_is_told_which_record_failed(scripted, retries_max, said):
    assert await SendBack(routes_to(scripted), "g", retries_max).give_back(MESSAGE, 0)
    ext = scripted.requests[-1].ext
    assert scripted.requests[-1].code == 36
    assert (ext["offset"], ext["group"], ext["delayLevel"], ext["originMsgId"]) == ("99", "g", "0", "K")
    assert ext.get("maxReconsumeTimes") == said


@pytest.mark.parametrize("refuse", [lambda request: answer(request, 1, "gone"), lambda request: None])
async def test_what_the_broker_does_not_take_back_is_sent_to_the_retry_topic(scripted, refuse):
    scripted.on[36] = refuse
    assert await SendBack(routes_to(scripted, 0.1), "g", None).give_back(MESSAGE, 0)
    request = scripted.requests[-1]
    assert (request.code, bytes(request.body)) == (310, b"body")
    assert [request.ext[name] for name in "bjlh"] == ["%RETRY%g", "3", "16", "7"]
    assert properties_of(request) == {
        "UNIQ_KEY": "K", "unit": "C", "DELAY": "5", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "K",
    }  # fmt: skip


async def test_a_copy_for_the_dead_letters_has_had_its_attempts(scripted):
    assert await SendBack(routes_to(scripted), "g", 4).send_copy(MESSAGE, -1)
    ext = scripted.requests[-1].ext
    assert (ext["j"], ext["l"], "DELAY" in properties_of(scripted.requests[-1])) == ("5", "4", False)


async def test_the_first_topic_and_identifier_are_kept(scripted):
    again = Message("T", b"", {"RETRY_TOPIC": "First", "ORIGIN_MESSAGE_ID": "O"}, "T", 0, 0, 0, 0, 0, b"")
    assert await SendBack(routes_to(scripted), "g", None).send_copy(again, 3)
    kept = properties_of(scripted.requests[-1])
    assert (kept["RETRY_TOPIC"], kept["ORIGIN_MESSAGE_ID"]) == ("First", "O")


async def test_a_message_that_nobody_takes_is_not_given_back(scripted):
    scripted.on[36] = scripted.on[310] = lambda request: answer(request, 2, "busy")
    assert not await SendBack(routes_to(scripted), "g", None).give_back(MESSAGE, 0)
