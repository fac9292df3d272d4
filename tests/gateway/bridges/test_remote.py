from __future__ import annotations

import asyncio
import socket

import pytest

from gateway.bridges.remote import Message, Remote, RemoteError, items_of, own_client_id, wait_for_first
from gateway.mqtt.properties import Property
from gateway.settings.bridges import BridgeSettings
from gateway.settings.models import MqttSettings
from tests.gateway.bridges.conftest import WAIT_S

ITEMS = [
    (Property.PAYLOAD_FORMAT, 1),
    (Property.MESSAGE_EXPIRY, 60),
    (Property.CONTENT_TYPE, b"a/b"),
    (Property.RESPONSE_TOPIC, "ä/1".encode()),
    (Property.CORRELATION, b"\xff\0"),
    (Property.USER, (b"k", b"v")),
    (Property.USER, (b"k", b"w")),
]


def settings(port, **changes):
    return BridgeSettings(address=f"127.0.0.1:{port}", topics=[{"filter": "a", "direction": "both"}], **changes)


def client(port, **changes):
    return Remote(settings(port, **changes), "gw1", None, lambda why: None, lambda: None)


@pytest.mark.asyncio
async def test_what_a_message_carries_goes_there_and_back(site):
    async with site.remote(), client(site.remote_port) as remote:
        assert await remote.listen([("echo", 1)]) == []
        async with site_client(site) as other:
            assert await other.send("echo", b"x", 1, ITEMS, is_retained=False)
            async with asyncio.timeout(WAIT_S):
                message = await anext(aiter(remote.messages))
    assert (str(message.topic), message.payload, message.qos) == ("echo", b"x", 1)
    assert items_of(message) == ITEMS


def site_client(site):
    return Remote(settings(site.remote_port), "gw2", None, lambda why: None, lambda: None)


@pytest.mark.asyncio
async def test_its_own_messages_are_not_echoed(site):
    async with site.remote(), client(site.remote_port) as remote, site_client(site) as other:
        assert await remote.listen([("a", 1)]) == []
        await remote.send("a", b"mine", 1, [], is_retained=False)
        await other.send("a", b"yours", 1, [], is_retained=False)
        async with asyncio.timeout(WAIT_S):
            assert (await anext(aiter(remote.messages))).payload == b"yours"


@pytest.mark.asyncio
async def test_a_message_that_is_too_large_for_the_other_broker_is_not_sent(site):
    mqtt = MqttSettings(listen=f"127.0.0.1:{site.remote_port}", packet_bytes_max=2_000)
    async with site.remote(mqtt=mqtt), client(site.remote_port) as remote:
        assert remote.packet_bytes_max == 2_000
        assert not await remote.send("a", b"x" * 2_000, 1, [], is_retained=False)
        assert await remote.send("a", b"x" * 1_900, 1, [], is_retained=False)


@pytest.mark.asyncio
async def test_a_broker_that_hangs_up_is_heard_at_once(site):
    async def hang_up(reader, writer):
        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", site.remote_port):
        remote = client(site.remote_port, version="3.1.1")
        remote.say_bridge()
        with pytest.raises(RemoteError, match="not let in"):
            async with remote:
                pass


@pytest.mark.asyncio
async def test_a_broker_that_hangs_up_when_it_has_let_us_in_is_heard_too(site):
    async def let_in_and_hang_up(reader, writer):
        await reader.read(1_000)
        writer.write(bytes.fromhex("20020000"))

    async with site.broker(let_in_and_hang_up):
        for _ in range(20):  # the end may be read before the client has come in, or later
            with pytest.raises(RemoteError):
                async with asyncio.timeout(WAIT_S), client(site.remote_port, version="3.1.1") as remote:
                    await anext(aiter(remote.messages))


@pytest.mark.asyncio
async def test_a_socket_that_is_closed_before_its_turn_to_be_written_to_is_left_alone(site):
    async with site.remote(), client(site.remote_port) as remote:
        with socket.socket() as closed:
            pass
        remote._watch(closed)
        assert await remote.send("a", b"x", 1, [], is_retained=False)


@pytest.mark.asyncio
async def test_first_that_fails_ends_the_others():
    async def fail():
        raise RemoteError("gone")

    other = asyncio.ensure_future(asyncio.Event().wait())
    with pytest.raises(RemoteError, match="gone"):
        await wait_for_first([asyncio.ensure_future(fail()), other])
    await asyncio.sleep(0)
    assert other.cancelled()


def test_client_is_named_after_the_machine_where_nothing_is_said():
    assert own_client_id(settings(1), "cloud") == f"{socket.gethostname()}.cloud"
    assert own_client_id(settings(1, client_id="me"), "cloud") == "me"


def test_message_of_an_old_client_carries_nothing():
    assert items_of(Message("a", b"", 0, retain=False, mid=0, properties=None)) == []
