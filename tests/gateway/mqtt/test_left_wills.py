"""Wills of a killed process whose clients a back end let in: that back end is asked before they are published."""

from __future__ import annotations

import asyncio
import tarfile

import pytest
import pytest_asyncio

from core.lmq.queue_name import mqtt_queue_name
from core.settings import StoreSettings
from gateway.mqtt.left_wills import AGAIN_MS
from tests.support import mqtt, mqtt_5
from tests.support.backends import JudgeBackend
from tests.support.logins import quick_hash
from tests.support.mqtt_door import World
from tests.support.sources import ROOT

pytestmark = pytest.mark.asyncio

OLD = ROOT / "tests" / "data" / "lmq-gateway-2-wills" / "folder.tar.gz"
USERS = {"users": {"alice": {"password_hash": quick_hash("x")}}}


class RestartedWorld(World):
    """A world whose users are those of `backend`, from before the door starts."""

    backend = None

    def make_authenticator(self):
        made = super().make_authenticator()
        if self.backend is not None:
            made.backends.use([self.backend])
        return made


class Site:
    def __init__(self, path, **settings):
        self.backend = RestartedWorld.backend = JudgeBackend()
        self.world = RestartedWorld(path, auth=USERS, **settings)

    async def rest(self):
        """Let all go on until it waits for the back end."""
        for _ in range(30):
            await asyncio.sleep(0)
            self.world.turn()

    async def client(self, client_id=b"c", user=b"ann", **options):
        peer = self.world.dial().send(mqtt.connect(client_id, user=user, password=b"x", **options))
        await self.rest()
        assert peer.take()[0][3] == 0
        return peer

    async def leave(self, client_id, topic, **options):
        """Have a client leave a will of its name."""
        return await self.client(client_id, will=(topic, client_id, 1, False), **options)

    def restart(self, backend=None):
        """Kill the process, and start one with a back end of the same settings, or another."""
        self.world.close()
        self.backend = RestartedWorld.backend = backend or JudgeBackend()
        self.world.open()

    def pass_ms(self, ms):
        self.world.now_ms += ms
        self.world.door.wills.publish_due(self.world.now_ms)

    def watch(self):
        return self.world.client(b"watch", (b"#", 1), user=b"alice", password=b"x", clean=False)

    async def bodies(self):
        """Return what a watcher of before the kill gets."""
        await self.rest()
        return self.world.connect(b"watch", user=b"alice", password=b"x", clean=False).bodies()

    @property
    def left(self):
        """How many wills are written down."""
        return len(self.world.store.table("mqtt_wills"))


@pytest_asyncio.fixture
async def site(tmp_path, engine_maker):
    site = Site(tmp_path, make_engine=engine_maker)
    yield site
    site.world.door.wills.stop()
    site.world.authenticator.stop()
    site.world.close()
    RestartedWorld.backend = None


async def test_will_is_published_after_its_back_end_said_yes_and_one_that_it_denies_is_not(site, caplog):
    site.watch()
    await site.leave(b"a", b"open/a")
    site.backend.topics.clear()
    await site.leave(b"b", b"shut/b")
    site.restart()
    assert (await site.bodies(), site.left) == ([b"a"], 0)
    assert site.backend.topics == [("ann", "publish", b"open/a"), ("ann", "publish", b"shut/b")]
    assert "denied will client=b user=ann name=shut/b" in caplog.text


async def test_right_that_was_taken_meanwhile_counts_no_more(site):
    site.watch()
    await site.leave(b"a", b"open/a")
    strict = JudgeBackend()
    strict.opens = b"other/"
    site.restart(strict)
    assert (await site.bodies(), site.left) == ([], 0)


async def test_another_back_end_is_not_asked_and_the_will_is_not_published(site):
    site.watch()
    await site.leave(b"a", b"open/a")
    site.restart(JudgeBackend(groups=("others",)))
    assert (await site.bodies(), site.left, site.backend.topics) == ([], 0, [])


async def test_will_waits_written_down_until_its_back_end_answers(site):
    site.watch()
    await site.leave(b"a", b"open/a")
    for _ in range(2):
        dead = JudgeBackend()
        dead.fails = True
        site.restart(dead)
        assert (await site.bodies(), site.left) == ([], 1)
    site.pass_ms(AGAIN_MS[0] - 1)
    await site.rest()
    assert len(dead.topics) == 1
    site.pass_ms(1)
    await site.rest()
    assert len(dead.topics) == 2
    dead.fails = False
    site.pass_ms(AGAIN_MS[1])
    assert (await site.bodies(), site.left) == ([b"a"], 0)


async def test_will_of_a_client_that_is_back_before_the_answer_is_forgotten(site):
    site.watch()
    await site.leave(b"a", b"open/a")
    await site.leave(b"b", b"open/b")
    slow = JudgeBackend()
    slow.gate.clear()
    site.restart(slow)
    await site.rest()
    site.world.dial().send(mqtt.connect(b"a", user=b"ann", password=b"x"))
    await site.rest()
    slow.gate.set()
    assert (await site.bodies(), site.left) == ([b"b"], 0)


async def test_will_that_the_client_of_another_user_writes_down_meanwhile_stays(site):
    site.watch()
    await site.leave(b"a", b"open/a")
    slow = JudgeBackend()
    slow.gate.clear()
    site.restart(slow)
    await site.rest()
    other = site.world.client(b"a", user=b"alice", password=b"x", will=(b"t", b"of alice", 1, False))
    slow.gate.set()
    assert (await site.bodies(), site.left) == ([b"a"], 1)
    other.vanish()
    assert (await site.bodies(), site.left) == ([b"a", b"of alice"], 0)


async def test_delayed_will_is_asked_about_when_it_is_due(site):
    site.watch()
    peer = site.world.dial()
    expiry, delay = mqtt_5.encoded((0x11, 60)), mqtt_5.encoded((0x18, 5))
    peer.send(
        mqtt.connect_5(b"a", user=b"ann", password=b"x", properties=expiry, will=(b"open/a", b"a", 1, False, delay))
    )
    await site.rest()
    site.restart()
    site.pass_ms(4_999)
    assert (await site.bodies(), site.left, site.backend.topics) == ([], 1, [])
    site.pass_ms(1)
    assert (await site.bodies(), site.left) == ([b"a"], 0)
    assert site.backend.topics == [("ann", "publish", b"open/a")]


@pytest.mark.parametrize("count", [40, 600])
async def test_wills_about_which_no_question_is_to_be_asked_are_published_without_a_rest(site, monkeypatch, count):
    monkeypatch.setattr(JudgeBackend, "judges_topics", False)
    site.restart()
    site.watch()
    for i in range(count):
        site.world.dial().send(mqtt.connect(b"%d" % i, user=b"ann", password=b"x", will=(b"t", b"gone", 1, False)))
        await site.rest()
    assert site.left == count
    site.restart()
    await site.rest()
    broker = site.world.broker
    assert (site.left, broker.max_offset(broker.find_queue(mqtt_queue_name(b"#")))) == (0, count)


async def test_folder_whose_wills_say_no_login_is_taken_as_it_is(tmp_path):
    with tarfile.open(OLD) as packed:
        packed.extractall(tmp_path, filter="data")
    site = Site(tmp_path / "data", store_settings=StoreSettings(segment_bytes=64 * 1024))
    await site.rest()
    reader = site.world.connect(b"sub", user=b"alice", password=b"x", clean=False)
    assert reader.bodies() == [b"of the settings"]
    assert (site.left, site.backend.topics) == (0, [])
    site.world.close()
