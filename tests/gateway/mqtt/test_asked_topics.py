"""Clients whose topics a back end is asked about: each waits for the answer, and nobody else does."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.support import mqtt
from tests.support.backends import JudgeBackend
from tests.support.exactly_once import restart
from tests.support.mqtt_door import World

pytestmark = pytest.mark.asyncio


class Site:
    """A door whose users are the back end's."""

    def __init__(self, path, **settings):
        self.world = World(path, **settings)
        self.backend = JudgeBackend()
        self.world.authenticator.backends.use([self.backend])

    async def rest(self):
        """Let all go on until it waits for the back end."""
        for _ in range(30):
            await asyncio.sleep(0)
            self.world.turn()

    async def send(self, peer, *packets):
        peer.send(*packets)
        await self.rest()
        return peer.take()

    async def client(self, client_id=b"c", user=b"ann", **options):
        peer = self.world.dial()
        answers = await self.send(peer, mqtt.connect(client_id, user=user, password=b"x", **options))
        assert answers[0][0] == 0x20
        assert answers[0][3] == 0
        return peer


@pytest_asyncio.fixture
async def site(tmp_path, engine_maker):
    site = Site(tmp_path, make_engine=engine_maker)
    yield site
    site.world.authenticator.stop()
    site.world.close()


async def test_first_message_to_a_topic_waits_for_the_answer_and_the_next_ones_do_not(site):
    reader = site.world.client(b"r", (b"#", 0))
    peer = await site.client()
    site.backend.gate.clear()
    sent = [mqtt.publish(b"open/a", b"1"), mqtt.publish(b"shut", b"2"), mqtt.publish(b"open/a", b"3")]
    peer.send(*sent)
    await site.rest()
    assert reader.bodies() == []
    other = site.world.client(b"o")
    other.send(mqtt.publish(b"x", b"at once"))
    assert reader.bodies() == [b"at once"]
    site.backend.gate.set()
    await site.rest()
    assert reader.bodies() == [b"1", b"3"]
    assert site.backend.topics == [("ann", "publish", b"open/a"), ("ann", "publish", b"shut")]
    await site.send(peer, mqtt.publish(b"open/a", b"4"), mqtt.publish(b"shut", b"5"))
    assert reader.bodies() == [b"4"]
    assert len(site.backend.topics) == 2


async def test_subscribing_waits_for_the_answer_and_what_comes_after_it_waits_too(site):
    peer = await site.client()
    site.backend.gate.clear()
    peer.send(mqtt.subscribe(1, (b"open/#", 0), (b"shut/#", 0)), mqtt.publish(b"open/a", b"own"))
    await site.rest()
    assert peer.take() == []
    site.backend.gate.set()
    await site.rest()
    suback, delivery = peer.take()
    assert suback[:2] == b"\x90\x04"
    assert suback[4:] == b"\x00\x80"
    assert mqtt.parse_publish(delivery).body == b"own"
    assert [(action, topic) for _, action, topic in site.backend.topics] == [
        ("subscribe", b"open/#"),
        ("receive", b"open/#"),
        ("subscribe", b"shut/#"),
        ("receive", b"shut/#"),
        ("publish", b"open/a"),
    ]


async def test_back_end_that_fails_is_a_no_and_is_asked_again(site):
    reader = site.world.client(b"r", (b"#", 0))
    peer = await site.client()
    site.backend.fails = True
    await site.send(peer, mqtt.publish(b"open/a", b"1"))
    assert reader.bodies() == []
    site.backend.fails = False
    await site.send(peer, mqtt.publish(b"open/a", b"2"))
    assert reader.bodies() == [b"2"]


async def test_session_keeps_what_the_back_end_still_allows_when_its_client_comes_again(site):
    peer = await site.client(clean=False)
    await site.send(peer, mqtt.subscribe(1, (b"open/#", 0)))
    peer.vanish()
    site.backend.topics.clear()
    site.world.now_ms += 120_000  # nothing is remembered
    again = await site.client(clean=False)
    assert ("ann", "subscribe", b"open/#") in site.backend.topics
    other = site.world.client(b"o")
    other.send(mqtt.publish(b"open/x", b"later"))
    await site.rest()
    assert again.bodies() == [b"later"]


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_what_is_under_way_of_an_ended_subscription_is_asked_about_when_its_client_comes_again(
    site, is_restarted
):
    peer = await site.client(clean=False)
    await site.send(peer, mqtt.subscribe(1, (b"open/#", 1)))
    site.world.client(b"o").send(mqtt.publish(b"open/x", b"one", qos=1, packet_id=1))
    await site.rest()
    assert peer.bodies() == [b"one"]
    await site.send(peer, mqtt.unsubscribe(2, b"open/#"))
    peer.vanish()
    if is_restarted:
        restart(site.world)
        site.world.authenticator.backends.use([site.backend])
    site.world.now_ms += 120_000  # nothing is remembered
    peer = site.world.dial()
    packets = await site.send(peer, mqtt.connect(b"c", user=b"ann", password=b"x", clean=False))
    assert [one.body for one in mqtt.deliveries(b"".join(packets[1:]))] == [b"one"]


async def test_will_is_asked_about_at_the_start_and_published_long_after(site):
    reader = site.world.client(b"r", (b"#", 0))
    allowed = await site.client(b"a", will=(b"open/gone", b"a", 0, False))
    denied = await site.client(b"b", will=(b"shut/gone", b"b", 0, False))
    site.world.now_ms += 3_600_000
    allowed.vanish()
    denied.vanish()
    await site.rest()
    assert reader.bodies() == [b"a"]


async def test_client_that_goes_while_it_waits_leaves_nothing_behind(site):
    reader = site.world.client(b"r", (b"#", 0))
    peer = await site.client()
    site.backend.gate.clear()
    peer.send(mqtt.publish(b"open/a", b"1"))
    await site.rest()
    peer.vanish()
    site.backend.gate.set()
    await site.rest()
    assert reader.bodies() == []


async def test_answers_are_of_one_user_and_client(site):
    await site.send(await site.client(b"a"), mqtt.publish(b"open/a", b"1"))
    await site.send(await site.client(b"b"), mqtt.publish(b"open/a", b"1"))
    await site.send(await site.client(b"c", b"bob"), mqtt.publish(b"open/a", b"1"))
    assert [user for user, _, _ in site.backend.topics] == ["ann", "ann", "bob"]


async def test_messages_to_come_are_asked_about_by_the_topic_that_they_are_for(tmp_path, engine_maker):
    rule = {"action": "publish", "source": "in/#", "pattern": "^in/(.+)$", "destination": "open/$1"}
    site = Site(tmp_path, rewrite=[rule], make_engine=engine_maker)
    peer = await site.client()
    await site.send(peer, mqtt.publish(b"in/a", b"1"), mqtt.publish(b"$delayed/1/shut", b"2"))
    assert [topic for _, _, topic in site.backend.topics] == [b"open/a", b"shut"]
    site.world.authenticator.stop()
    site.world.close()


async def test_clients_that_are_in_when_the_same_settings_are_read_again_ask_the_new_back_end(site):
    reader = site.world.client(b"r", (b"#", 0))
    peer = await site.client()
    await site.send(peer, mqtt.publish(b"open/a", b"1"))
    for number in (2, 3):
        before, site.backend = site.backend, JudgeBackend()
        site.world.authenticator.backends.use([site.backend])
        assert before.is_closed
        await site.send(peer, mqtt.publish(b"open/a", b"%d" % number), mqtt.publish(b"open/b", b"new"))
    assert reader.bodies() == [b"1", b"2", b"new", b"3", b"new"]
    assert ("ann", "publish", b"open/a") in site.backend.topics
