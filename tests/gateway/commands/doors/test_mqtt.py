from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from gateway.commands.doors import mqtt as module
from gateway.commands.doors.mqtt import MqttLink
from gateway.commands.doors.place import Door, Place, Tls
from gateway.commands.doors.traffic import AckMode, LinkError, Outgoing, Wanted
from gateway.settings.models import AuthSettings, MqttSettings
from tests.support.certificates import authority_file, server_files
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


def place(address, *, user=None, password=None, tls=None):
    return Place(Door.MQTT, *address, user, password, "/", None, tls)


async def test_what_is_not_acknowledged_goes_to_another_of_the_group(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        at = place(gateway.listening["mqtt"])
        wanted = Wanted(["work/#"], shares=True)
        async with MqttLink(at) as sender, MqttLink(at) as second:
            async with MqttLink(at) as first, aclosing(first.listen(wanted)) as messages:
                coming = asyncio.ensure_future(anext(messages))
                reached = []
                while not coming.done():  # until it is subscribed; what comes before that reaches nobody
                    reached.append(await sender.publish(Outgoing("work/1", b"x")))
                    await asyncio.wait((coming,), timeout=0.01)
                assert reached[-1] is True
                await first.settle(coming.result(), AckMode.REQUEUE)
                with pytest.raises(LinkError, match="no way to reject"):
                    await first.settle(coming.result(), AckMode.REJECT)
                given = second.listen(wanted)
                waiting = asyncio.ensure_future(anext(given))
                while "$share/lmq/work/#" not in second.subscribed:
                    await asyncio.sleep(0.001)
            async with aclosing(given):
                assert (await waiting).body == b"x"


async def test_logins_and_servers_that_are_not_there(tmp_path):
    with pytest.raises(LinkError, match=r"cannot connect to mqtt 127\.0\.0\.1:1") as failed:
        async with MqttLink(place(("127.0.0.1", 1))):
            pass
    assert failed.value.code == 6
    async with running_gateway(tmp_path, auth=AuthSettings(mqtt_anonymous=False)) as gateway:
        with pytest.raises(LinkError, match="refuses the login") as failed:
            async with MqttLink(place(gateway.listening["mqtt"], user="bob", password="x")):
                pass
        assert failed.value.code == 5


@pytest.mark.parametrize(
    ("hangs_up", "told"), [(True, "it hangs up and says nothing of MQTT"), (False, "no answer of MQTT in 0 s")]
)
async def test_a_server_that_speaks_something_else_is_told(monkeypatch, hangs_up, told):
    monkeypatch.setattr(module, "TIMEOUT_S", 60 if hangs_up else 0.2)
    writers = []

    async def respond(_reader, writer):
        writers.append(writer)
        if hangs_up:
            writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        at = place(server.sockets[0].getsockname())
        async with asyncio.timeout(30):
            with pytest.raises(LinkError, match=rf"{told}.*; it may speak TLS alone \(--tls\) or another") as failed:
                async with MqttLink(at):
                    pass
        writers[0].close()
    assert failed.value.code == 6


async def test_a_link_goes_through_tls(tmp_path):
    certificate, key = server_files()
    listen = [{"address": ANY_PORT, "tls": {"certificate": str(certificate), "key": str(key)}}]
    async with running_gateway(tmp_path, mqtt=MqttSettings(listen=listen)) as gateway:
        at = gateway.listening["mqtts"]
        for tls in (Tls(authority_file(), None, None, insecure=False), Tls(None, None, None, insecure=True)):
            async with MqttLink(place(at, tls=tls)) as link:
                await link.publish(Outgoing("a", b""))
