from __future__ import annotations

from contextlib import aclosing

import pytest

from gateway.commands.doors.place import Door, Place
from gateway.commands.doors.rocketmq import RocketmqLink
from gateway.commands.doors.traffic import AckMode, LinkError, Outgoing, Start, StartKind, Wanted
from gateway.settings.models import AuthSettings, RocketmqSettings
from tests.support.certificates import server_files
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio
FIRST = Start(StartKind.WORD, word="first")


def place(address, *, user=None, password=None):
    return Place(Door.ROCKETMQ, *address, user, password, "/", None, None)


async def test_messages_are_sent_taken_given_back_and_read_again(tmp_path):
    async with running_gateway(tmp_path) as gateway, RocketmqLink(place(gateway.listening["namesrv"])) as link:
        assert await link.publish(Outgoing("Jobs", b"1", headers={"a": "b"}, tags="T", keys="k")) is None
        wanted = Wanted(["Jobs"], shares=True, start=FIRST, count=1)
        async with aclosing(link.listen(wanted)) as messages:
            message = await anext(messages)
            assert (message.body, message.headers, message.properties["keys"]) == (b"1", {"a": "b"}, ["k"])
            await link.settle(message, AckMode.REQUEUE)
            again = await anext(messages)
            assert again.body == b"1"
            await link.settle(again, AckMode.ACK)
        async with aclosing(link.listen(Wanted(["Jobs"], shares=False, start=FIRST, tags="T"))) as messages:
            assert (await anext(messages)).body == b"1"


async def test_what_cannot_be_is_told(tmp_path):
    with pytest.raises(LinkError, match=r"cannot connect to rocketmq 127\.0\.0\.1:1") as failed:
        async with RocketmqLink(place(("127.0.0.1", 1))):
            pass
    assert failed.value.code == 6
    async with (
        running_gateway(tmp_path, auth=AuthSettings(rocketmq_anonymous=False)) as gateway,
        RocketmqLink(place(gateway.listening["namesrv"])) as link,
    ):
        with pytest.raises(LinkError, match="refused") as failed:
            await link.publish(Outgoing("Jobs", b""))
        assert failed.value.code == 5
        with pytest.raises(LinkError, match="no such field"):
            await link.publish(Outgoing("Jobs", b"", content_type="a/b"))


async def test_a_server_that_speaks_tls_alone_is_told(tmp_path):
    certificate, key = server_files()
    listen = [{"address": ANY_PORT, "tls": {"certificate": str(certificate), "key": str(key), "optional": False}}]
    async with running_gateway(tmp_path, rocketmq=RocketmqSettings(namesrv=listen, broker=listen)) as gateway:
        async with RocketmqLink(place(gateway.listening["namesrv-tls"])) as link:
            with pytest.raises(
                LinkError, match=r"lost the connection to .*; it may speak TLS alone \(--tls\)"
            ) as failed:
                await link.publish(Outgoing("Jobs", b"1"))
        assert failed.value.code == 6
