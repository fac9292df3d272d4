from __future__ import annotations

import asyncio
import json

import pytest
import pytest_asyncio

from core.metrics import SyncMetrics
from gateway.admin import live
from gateway.admin.live import LiveFeed, TooManyFollowersError
from gateway.admin.login import Caller
from tests.support.admin import make_view, managed_gateway
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio


def _read(event):
    name, data = event.removeprefix(f"retry: {live.RETRY_MS}\n").strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


@pytest_asyncio.fixture
async def feed(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        made = LiveFeed(make_view(gateway))
        yield made
        made.stop()


async def test_the_overview_tells_rates_of_the_last_seconds(feed, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now_s[0])
    view, rates = feed._view, []
    door = view.broker.metrics.door("amqp")
    for _ in range(8):
        feed.take(0.0)
        rates.append(view.rates)
        now_s[0] += 1
        door.messages_in += 30
        door.messages_out += 60
    assert rates == [(0.0, 0.0), *[(30.0, 60.0)] * 7]
    door.messages_in += 300
    for _ in range(6):
        feed.take(0.0)
        rates.append(view.rates)
        now_s[0] += 1
    assert rates[8] == (90.0, 60.0)
    assert rates[-1] == (0.0, 0.0)


async def test_a_page_gets_what_was_and_then_each_new_second(feed):
    feed.take(0.25)
    events = feed.follow()
    name, samples = _read(await anext(events))
    assert (name, len(samples)) == ("history", 1)
    assert samples[0]["loop_ms"] == 250
    assert samples[0]["memory_bytes"] > 1 << 20
    assert samples[0]["doors"].keys() >= {"amqp", "mqtt", "rocketmq"}
    coming = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    feed.take(0.0)
    name, sample = _read(await coming)
    assert name == "sample"
    assert sample["at_ms"] >= samples[0]["at_ms"]


async def test_who_sees_its_own_virtual_hosts_alone_is_sent_their_totals(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for name, tags in (("ann", "management"), ("mo", "monitoring")):
            await client.put(f"/api/users/{name}", json={"password_hash": quick_hash("x"), "tags": tags})
        await client.put("/api/vhosts/v")
        await client.put("/api/permissions/v/ann", json={"configure": "", "write": "", "read": ""})
        for vhost in ("%2F", "v"):
            await client.put(f"/api/queues/{vhost}/q", json={})
        view = make_view(gateway)
        feed = LiveFeed(view)
        feed.take(0.0)
        may = view.authenticator.find_member("ann", "127.0.0.1")
        ann, mo = Caller("", "ann", may, ("management",)), Caller("", "mo", None, ("monitoring",))
        events = feed.follow(ann)
        (sample,) = _read(await anext(events))[1]
        assert sample["own"] == {"vhosts": ["v"], "queues": 1, "ready": 0, "unacked": 0, "readers": 0}
        assert not sample.keys() & {"doors", "bridges", "dispatches", "connections"}
        coming = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await client.put("/api/queues/v/another", json={})
        feed.take(0.0)
        assert _read(await coming)[1]["own"]["queues"] == 2
        assert "doors" in _read(await anext(feed.follow(mo)))[1][0]
        feed.stop()


async def test_a_sync_shows_as_the_mean_of_its_second_only(feed):
    sync = feed._view.broker.metrics.sync = SyncMetrics()  # not the one that the gateway's own syncs go to
    for took_ms, expected in ((2.0, 2.0), (6.0, 6.0), (None, 0.0)):
        if took_ms is not None:
            sync.add(took_ms)
        feed.take(0.0)
        assert feed._samples[-1]["sync_ms"] == expected


async def test_the_history_has_a_bound(feed):
    for _ in range(live.SAMPLES_MAX + 5):
        feed.take(0.0)
    _, samples = _read(await anext(feed.follow()))
    assert len(samples) == live.SAMPLES_MAX


async def test_a_stream_ends_when_the_gateway_stops(feed):
    events = feed.follow()
    await anext(events)
    coming = asyncio.ensure_future(anext(events, None))
    await asyncio.sleep(0)
    feed.stop()
    assert await coming is None


async def test_a_stream_ends_after_a_while_so_that_its_login_is_looked_at_again(feed, monkeypatch):
    monkeypatch.setattr(live, "FOLLOWED_MAX", 2)
    events = feed.follow()
    await anext(events)
    for _ in range(2):
        coming = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        feed.take(0.0)
        assert _read(await coming)[0] == "sample"
    assert await anext(events, None) is None


async def test_streams_have_a_bound_and_one_that_ends_gives_its_place_back(feed):
    open_ones = [feed.follow() for _ in range(live.FOLLOWERS_MAX)]
    for events in open_ones:
        await anext(events)
    with pytest.raises(TooManyFollowersError):
        feed.follow()
    await open_ones[0].aclose()
    assert feed.follow() is not None


async def test_samples_are_taken_by_themselves(feed, monkeypatch):
    monkeypatch.setattr(live, "INTERVAL_S", 0.01)
    monkeypatch.setattr(live, "LOOK_S", 0.005)
    feed.start()
    events = feed.follow()
    await anext(events)
    assert _read(await anext(events))[0] == "sample"


async def test_a_page_is_told_when_a_list_changed_and_nothing_is_looked_at_while_nobody_follows(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        feed = LiveFeed(make_view(gateway))
        feed.take(0.0)
        events = feed.follow()
        _, (alone,) = _read(await anext(events))
        assert "lists" not in alone
        told = []
        for path in (None, "/api/vhosts/v", None):
            coming = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            if path is not None:
                await client.put(path, json={})
            feed.take(0.0)
            told.append(_read(await coming)[1]["lists"])
        assert told[0]["users"] == told[1]["users"] == told[2]["users"]
        assert told[0]["vhosts"] < told[1]["vhosts"] == told[2]["vhosts"]
        await events.aclose()
        feed.take(0.0)
        assert "lists" not in _read(await anext(feed.follow()))[1][-1]
        feed.stop()
