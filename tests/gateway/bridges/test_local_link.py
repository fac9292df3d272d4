from __future__ import annotations

import asyncio
import contextlib

import pytest

from gateway.bridges import packets
from gateway.bridges.local_link import LocalLink
from gateway.bridges.rules import Rules
from gateway.mqtt.properties import Property
from gateway.settings.bridges import BridgeSettings
from tests.gateway.bridges.conftest import OFF, WAIT_S
from tests.support.gateway import running_gateway
from tests.support.waiting import until

CLIENT = b"$bridge/x"


class Owner:
    def __init__(self):
        self.deliveries = []
        self.lost = []

    def on_delivery(self, delivery):
        self.deliveries.append(delivery)

    def on_link_lost(self, why):
        self.lost.append(why)


class Ends:
    """A gateway, and links to its door."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.door = gateway.doors["mqtt"]
        for name in (CLIENT, CLIENT + b"2"):
            gateway.authenticator.let_in(name.decode())

    def open(self, *topics, client=CLIENT):
        owner = Owner()
        link = LocalLink(
            packets.connect(client, 10),
            Rules(BridgeSettings(address="h:1", topics=[{"filter": name} for name in topics])),
            owner,
            self.gateway.turns.begin_read,
            list,
        )
        link.open(self.door.connect)
        return link, owner

    async def open_other(self):
        """Return a link that publishes."""
        link, _ = self.open("none", client=CLIENT + b"2")
        await link.ready
        link.start()
        return link


@contextlib.asynccontextmanager
async def opened(tmp_path, free_bytes=None):
    async with running_gateway(tmp_path, free_bytes=free_bytes, **OFF) as gateway:
        yield Ends(gateway)


async def publish(link, topic, body, qos=1):
    done = asyncio.get_running_loop().create_future()
    link.publish(topic, body, qos, [(Property.CONTENT_TYPE, b"t")], is_retained=False, then=done.set_result)
    async with asyncio.timeout(WAIT_S):
        return await done


@pytest.mark.asyncio
async def test_nothing_is_delivered_before_the_start_and_all_of_it_then(tmp_path):
    async with opened(tmp_path) as ends:
        link, owner = ends.open("a/#")
        other = await ends.open_other()
        await link.ready
        assert await publish(other, b"a/1", b"x") == 0
        assert await publish(other, b"a/2", b"y", qos=0) == 0
        await asyncio.sleep(0)
        assert owner.deliveries == []
        link.start()
        await until(lambda: len(owner.deliveries) == 2)
        assert [(one.topic, one.body, one.qos) for one in owner.deliveries] == [(b"a/1", b"x", 1), (b"a/2", b"y", 0)]
        assert owner.deliveries[0].properties.number(Property.SUBSCRIPTION_ID, 0) == 1
        other.end()
        link.end()


@pytest.mark.asyncio
async def test_what_was_not_acknowledged_comes_again_and_the_rest_does_not(tmp_path):
    async with opened(tmp_path) as ends:
        link, owner = ends.open("a/#")
        await link.ready
        link.start()
        other = await ends.open_other()
        for body in (b"1", b"2"):
            await publish(other, b"a", body)
        await until(lambda: len(owner.deliveries) == 2)
        link.acknowledge(owner.deliveries[0])
        await until(lambda: ends.door.sessions.find(CLIENT).window.tail == 1)
        link.end()
        again, owner = ends.open("a/#")
        await again.ready
        again.start()
        await until(lambda: owner.deliveries)
        assert [one.body for one in owner.deliveries] == [b"2"]


@pytest.mark.asyncio
async def test_its_own_messages_are_not_delivered_to_it(tmp_path):
    async with opened(tmp_path) as ends:
        link, owner = ends.open("#")
        await link.ready
        link.start()
        await publish(link, b"a", b"mine")
        other = await ends.open_other()
        await publish(other, b"a", b"yours")
        await until(lambda: owner.deliveries)
        assert [one.body for one in owner.deliveries] == [b"yours"]


@pytest.mark.asyncio
async def test_owner_hears_that_the_door_closed(tmp_path):
    async with opened(tmp_path) as ends:
        link, owner = ends.open("a")
        await link.ready
        newer, _ = ends.open("a")
        await newer.ready
        await until(lambda: owner.lost)
        assert owner.lost == ["the door ended the session: 0x8e"]
        link.end()


@pytest.mark.asyncio
async def test_a_message_that_the_disk_had_no_room_for_is_published_again(tmp_path, monkeypatch):
    free_bytes = 1 << 40
    async with opened(tmp_path, lambda: free_bytes) as ends:
        monkeypatch.setattr("gateway.bridges.local_link.RETRY_S", 0.01)
        link, _ = ends.open("a")
        await link.ready
        link.start()
        room = ends.gateway.broker.room
        free_bytes = 0  # the gateway looks for itself too
        room.note(free_bytes, is_full=True, now_ms=0)
        sent = asyncio.ensure_future(publish(link, b"b", b"x"))
        await until(lambda: ends.door.metrics.refused.get("quota_exceeded", 0) > 1)
        assert not sent.done()
        free_bytes = 1 << 40
        room.note(free_bytes, is_full=False, now_ms=0)
        assert await sent == 0x10  # it is taken, and nobody subscribes to it


@pytest.mark.asyncio
async def test_takes_no_more_than_can_wait(tmp_path, monkeypatch):
    async with opened(tmp_path) as ends:
        monkeypatch.setattr("gateway.bridges.local_link.PENDING_MAX", 2)
        link, _ = ends.open("a")
        await link.ready
        link.start()
        first, second = (asyncio.ensure_future(publish(link, b"b", b"x")) for _ in range(2))
        await asyncio.sleep(0)
        assert not link.drained.is_set()
        await asyncio.gather(first, second)
        assert link.drained.is_set()
        link.hold_reading()
        assert not link.drained.is_set()
        link.release_reading()
        assert link.drained.is_set()
