"""A bridge between two gateways, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import socket
import struct

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.bridges.bridge import MARK
from gateway.settings.bridges import BridgeSettings
from gateway.settings.models import AuthSettings, MqttSettings, UserSettings
from gateway.settings.topic_rules import AutoSubscription, RewriteRule
from tests.gateway.bridges.conftest import OFF, free_port
from tests.support.certificates import authority_file, issue
from tests.support.gateway import ANY_PORT, running_gateway
from tests.support.waiting import until

OUT = {"filter": "up/#", "remote_prefix": "site1/"}
BOTH = {"filter": "shared/#", "direction": "both"}


def counts(gateway, name="cloud"):
    return gateway.broker.metrics.bridge(name)


@pytest.mark.asyncio
async def test_messages_go_out_and_come_in_under_their_prefixes_with_what_they_carry(site):
    down = {"filter": "down/#", "direction": "in", "remote_prefix": "site1/", "local_prefix": "cloud/"}
    async with site.remote() as remote, site.local(OUT, down) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "site1/#") as there, site.client(local, "cloud/#") as here:
            said = Properties(PacketTypes.PUBLISH)
            said.ContentType, said.CorrelationData, said.ResponseTopic = "a/b", b"\xff", "back"
            said.PayloadFormatIndicator, said.MessageExpiryInterval = 1, 100
            said.UserProperty = [("k", "1"), ("k", "2")]
            await here.publish("up/a", b"x", qos=1, properties=said)
            (came,) = await site.messages(there, 1)
            assert (str(came.topic), came.payload, came.qos) == ("site1/up/a", b"x", 1)
            found = came.properties
            assert (found.ContentType, found.CorrelationData, found.ResponseTopic) == ("a/b", b"\xff", "back")
            assert found.PayloadFormatIndicator == 1
            assert 98 <= found.MessageExpiryInterval <= 100
            assert found.UserProperty == [("k", "1"), ("k", "2"), (MARK.decode(), "gw1")]
            await there.publish("site1/down/b", b"y", qos=1, properties=said)
            came = (await site.messages(there, 1), await site.messages(here, 1))[1][0]
            assert (str(came.topic), came.payload) == ("cloud/down/b", b"y")
            assert came.properties.UserProperty == [("k", "1"), ("k", "2"), (MARK.decode(), "gw1")]
            await until(lambda: (counts(local).messages_out, counts(local).messages_in) == (1, 1))


@pytest.mark.asyncio
async def test_what_goes_out_waits_while_the_other_broker_is_away_also_over_a_restart(site):
    async with site.local(OUT) as local, site.client(local) as here:
        for k in range(5):  # from the first moment on
            await here.publish("up/a", b"%d" % k, qos=1)
    async with (
        site.remote() as remote,
        site.client(remote, "site1/#") as there,
        site.local(OUT) as local,
        site.client(local) as here,
    ):
        await here.publish("up/a", b"5", qos=1)
        got = await site.take(there, 6)
    assert got == [("site1/up/a", b"%d" % k) for k in range(6)]


@pytest.mark.asyncio
async def test_what_comes_in_waits_there_while_we_are_away(site):
    back = {"filter": "down/#", "direction": "in"}
    async with site.remote() as remote:
        async with site.local(back) as local:
            await until(lambda: counts(local).is_connected)
        async with site.client(remote) as there:
            await there.publish("down/1", b"x", qos=1)
        async with site.local(back) as local:
            await until(lambda: counts(local).messages_in == 1)
            queue_ref = local.broker.find_queue(b"LMQ_PARENT/0")
            assert local.broker.max_offset(queue_ref) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_what_came_in_by_a_bridge_does_not_go_back_out_by_it(site, version):
    async with site.remote() as remote, site.local(BOTH, version=version) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "shared/#") as there, site.client(local, "shared/#") as here:
            await there.publish("shared/1", b"there", qos=1)
            await here.publish("shared/2", b"here", qos=1)
            assert sorted(await site.take(there, 2)) == [("shared/1", b"there"), ("shared/2", b"here")]
            assert sorted(await site.take(here, 2)) == [("shared/1", b"there"), ("shared/2", b"here")]
            await here.publish("shared/3", b"end", qos=1)  # what would be echoed would have come before it
            assert await site.take(there, 1) == [("shared/3", b"end")]
            assert await site.take(here, 1) == [("shared/3", b"end")]
            await until(lambda: (counts(local).messages_in, counts(local).messages_out) == (1, 2))


@pytest.mark.asyncio
async def test_messages_go_round_two_bridges_once(site):
    bridges = {name: site.bridge([BOTH], client_id=name) for name in ("one", "two")}
    async with site.remote() as remote, site.local(bridges=bridges) as local:
        await until(lambda: counts(local, "one").is_connected and counts(local, "two").is_connected)
        async with site.client(local, "shared/#") as here, site.client(remote, "shared/#") as there:
            await here.publish("shared/1", b"x", qos=1)
            assert await site.take(there, 2) == [("shared/1", b"x")] * 2  # each bridge carries it
            assert await site.take(here, 1) == [("shared/1", b"x")]
            await until(lambda: sum(counts(local, name).dropped.get("loop", 0) for name in bridges) == 2)
            assert len(here.messages) == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("is_retained", [False, True])
@pytest.mark.parametrize("versions", [("5", "5"), ("3.1.1", "3.1.1"), ("5", "3.1.1")])
@pytest.mark.parametrize("try_private", [True, False])
async def test_nothing_goes_round_and_round_by_two_bridges_to_one_broker(site, versions, try_private, is_retained):
    bridges = {
        name: site.bridge([BOTH], client_id=name, version=version, try_private=try_private)
        for name, version in zip(("one", "two"), versions, strict=True)
    }
    async with site.remote() as remote, site.local(bridges=bridges) as local:
        both = [counts(local, name) for name in bridges]
        await until(lambda: all(one.is_connected for one in both))
        async with site.client(local, "shared/#") as here, site.client(remote, "shared/#") as there:
            await here.publish("shared/1", b"x", qos=1, retain=is_retained)
            assert await site.take(there, 2) == [("shared/1", b"x")] * 2  # each bridge carries it
            heard = 2 * (try_private or versions == ("5", "5")) or 2 + versions.count("3.1.1")
            await until(lambda: sum(one.dropped.get("loop", 0) for one in both) == heard)
            await there.publish("shared/2", b"y", qos=1, retain=is_retained)  # comes in by each, goes out by the other
            assert await site.take(there, 3) == [("shared/2", b"y")] * 3
            assert await site.take(here, 3) == [("shared/1", b"x"), *[("shared/2", b"y")] * 2]
            await until(lambda: sum(one.dropped.get("loop", 0) for one in both) == 2 * heard)
            await until(lambda: (sum(one.messages_in for one in both), sum(one.messages_out for one in both)) == (2, 4))
            assert (len(here.messages), len(there.messages)) == (0, 0)


@pytest.mark.asyncio
async def test_messages_go_round_a_ring_of_three_gateways_until_they_are_where_they_came_from(tmp_path):
    ports = [free_port() for _ in range(3)]
    async with contextlib.AsyncExitStack() as stack:
        ring = []
        for k in range(3):
            to_next = {"address": f"127.0.0.1:{ports[(k + 1) % 3]}", "retry_min_ms": 10, "retry_max_ms": 50}
            bridges = {"next": BridgeSettings(topics=[BOTH], client_id=f"gw{k}", **to_next)}
            mqtt = MqttSettings(listen=f"127.0.0.1:{ports[k]}")
            made = running_gateway(tmp_path / str(k), **{**OFF, "mqtt": mqtt}, bridges=bridges)
            ring.append(await stack.enter_async_context(made))
        await until(lambda: all(counts(one, "next").is_connected for one in ring))
        clients = [
            await stack.enter_async_context(aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5))
            for port in ports
        ]
        for client in clients:
            await client.subscribe("shared/#", qos=1)
        await clients[0].publish("shared/1", b"x", qos=1)
        await until(lambda: [len(client.messages) for client in clients] == [3, 2, 2])  # one copy each way round
        await until(lambda: sum(counts(one, "next").dropped.get("loop", 0) for one in ring) == 2)
        await until(lambda: sum(counts(one, "next").messages_in for one in ring) == 3)
        await until(lambda: sum(counts(one, "next").messages_out for one in ring) == 3)  # counted when acknowledged
        assert [len(client.messages) for client in clients] == [3, 2, 2]


@pytest.mark.asyncio
async def test_a_marked_message_is_not_sent_to_where_it_came_from(site):
    async with site.remote() as remote, site.local(OUT) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "site1/#") as there, site.client(local) as here:
            said = Properties(PacketTypes.PUBLISH)
            said.UserProperty = [(MARK.decode(), "gw1")]
            await here.publish("up/looped", b"x", qos=1, properties=said)
            await here.publish("up/fine", b"y", qos=1)
            assert await site.take(there, 1) == [("site1/up/fine", b"y")]
    assert counts(local).dropped == {"loop": 1}


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_qos_and_retain_go_along(site, version):
    async with site.remote() as remote, site.local(OUT | {"qos": 2}, version=version) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(local) as here:
            for qos in (0, 1, 2):
                await here.publish("up/a", b"%d" % qos, qos=qos)
            await here.publish("up/kept", b"k", qos=1, retain=True)
            await until(lambda: counts(local).messages_out == 4)
        async with site.client(remote, "site1/up/kept") as there:
            (kept,) = await site.messages(there, 1)
    assert (kept.payload, kept.retain) == (b"k", True)


@pytest.mark.asyncio
async def test_many_messages_arrive_in_order_and_once(site):
    async with site.remote() as remote, site.local(OUT, inflight_max=7) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "site1/#") as there, site.client(local) as here:
            here.pending_calls_threshold = 1000
            for k in range(100):
                await here.publish("up/n", b"%d" % k, qos=1)
            got = await site.take(there, 100)
    assert [body for _, body in got] == [b"%d" % k for k in range(100)]


@pytest.mark.asyncio
async def test_others_see_whether_it_stands(site):
    async with site.remote() as remote:
        async with site.local(OUT, status_topic="bridges/gw1") as local:
            await until(lambda: counts(local).is_connected)
            async with site.client(remote, "bridges/#") as there:
                assert await site.take(there, 1) == [("bridges/gw1", b"1")]
        async with site.client(remote, "bridges/#") as there:
            assert await site.take(there, 1) == [("bridges/gw1", b"0")]


@pytest.mark.asyncio
async def test_its_session_is_listed_as_connected(site):
    async with site.local(OUT) as local:
        sessions = [entry for entry in local.doors["mqtt"].inventory().sessions() if entry is not None]
    assert [(entry.client, entry.is_connected) for entry in sessions] == [("$bridge/cloud", True)]


@pytest.mark.asyncio
async def test_topics_that_are_no_more_carried_are_unsubscribed_and_bridges_that_are_no_more_ended(site):
    client = b"$bridge/cloud"
    async with site.local(OUT, {"filter": "old/#"}) as local:
        assert set(local.doors["mqtt"].sessions.find(client).subscriptions) == {b"up/#", b"old/#"}
    async with site.local(OUT) as local:
        assert set(local.doors["mqtt"].sessions.find(client).subscriptions) == {b"up/#"}
    async with site.local(bridges={}) as local:
        assert local.doors["mqtt"].sessions.find(client) is None


@pytest.mark.asyncio
async def test_what_comes_in_no_more_is_unsubscribed_there_after_a_restart_too(site):
    async with site.remote() as remote:
        sessions = remote.doors["mqtt"].sessions
        async with site.local(BOTH, {"filter": "old/#", "direction": "in"}) as local:
            await until(lambda: counts(local).is_connected)
            assert set(sessions.find(b"gw1").subscriptions) == {b"shared/#", b"old/#"}
        async with site.local(BOTH) as local:
            await until(lambda: counts(local).is_connected)
            assert set(sessions.find(b"gw1").subscriptions) == {b"shared/#"}


@pytest.mark.asyncio
@pytest.mark.parametrize("qos", [0, 1])
async def test_a_broker_that_sends_back_what_it_is_sent_is_not_listened_to(site, qos):
    async with site.remote() as remote, site.local(BOTH, version="3.1.1", try_private=False) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "shared/#") as there, site.client(local, "shared/#") as here:
            await here.publish("shared/1", b"here", qos=qos)
            assert await site.take(there, 1) == [("shared/1", b"here")]
            await until(lambda: counts(local).dropped == {"loop": 1})
            await there.publish("shared/1", b"here", qos=qos)  # the same from another client is let in
            assert await site.take(here, 2) == [("shared/1", b"here")] * 2
            await until(lambda: (counts(local).messages_in, counts(local).dropped) == (1, {"loop": 1}))


@pytest.mark.asyncio
async def test_tries_to_reach_the_other_broker_are_further_and_further_apart_and_not_as_those_of_others(site, caplog):
    def waits():
        said = [re.search(r"retry_ms=(\d+)", record.getMessage()) for record in caplog.records]
        return [int(found[1]) for found in said if found]

    async with site.local(OUT, retry_min_ms=10, retry_max_ms=80):
        await until(lambda: len(waits()) >= 12)
    longest = [10, 20, 40] + [80] * 9
    assert all(most // 2 <= wait <= most for wait, most in zip(waits(), longest, strict=False))
    assert len(set(waits()[3:12])) > 1


@pytest.mark.asyncio
async def test_a_broker_that_goes_away_in_the_middle_of_a_write_costs_a_line(site, caplog):
    async def reset(reader, writer):
        await reader.read(1_000)
        writer.write(bytes.fromhex("20020000"))
        await reader.read(1_000)
        no_linger = struct.pack("ii", 1, 0)
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)

    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with (
        site.broker(reset),
        site.local(OUT | {"qos": 1}, version="3.1.1") as local,
        site.client(local) as here,
    ):
        await here.publish("up/a", b"x" * 1_000_000, qos=1)
        await until(lambda: counts(local).failures >= 5)
    gc.collect()
    said = [record for record in caplog.records if record.levelno >= logging.WARNING and "bridge" in record.message]
    assert [record.levelname for record in said] == ["WARNING"] * len(said)
    assert all(record.message.startswith("bridge is down bridge=cloud address=") for record in said)
    assert len(said) == counts(local).failures
    assert {record.name.partition(".")[0] for record in caplog.records} <= {"gateway", "core", "asyncio"}
    assert complaints == []


@pytest.mark.asyncio
async def test_what_goes_through_a_bridge_may_be_for_later(site):
    rules = (
        {"filter": "later/#", "remote_prefix": "$delayed/0/there/"},
        {"filter": "later/#", "direction": "in", "local_prefix": "$delayed/0/here/"},
    )
    async with site.remote() as remote, site.local(*rules) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "there/#") as there, site.client(local, "here/#") as here:
            await here.publish("later/1", b"x", qos=1)
            assert await site.take(there, 1) == [("there/later/1", b"x")]
            await there.publish("later/2", b"y", qos=1)
            assert await site.take(here, 1) == [("here/later/2", b"y")]


@pytest.mark.asyncio
async def test_what_would_be_no_topic_here_is_left_out_and_the_rest_goes_on(site):
    rules = (
        {"filter": "long/#", "direction": "in", "local_prefix": "x/" * 100},
        {"filter": "later", "direction": "in", "local_prefix": "$delayed/9999999999/"},
        {"filter": "fine", "direction": "in"},
    )
    async with site.remote() as remote, site.local(*rules) as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote) as there, site.client(local, "fine") as here:
            for topic in ("long/" + "y/" * 120, "later", "fine"):
                await there.publish(topic, b"x", qos=1)
            assert await site.take(here, 1) == [("fine", b"x")]
    assert (counts(local).dropped, counts(local).connects) == ({"refused_here": 2}, 1)


@pytest.mark.asyncio
async def test_filters_of_a_bridge_are_not_rewritten_and_it_gets_none_that_it_does_not_carry(site):
    rule = RewriteRule(action="subscribe", source="up/#", pattern="^up/(.+)$", destination="other/$1")
    mqtt = MqttSettings(listen=ANY_PORT, rewrite=(rule,), auto_subscribe=(AutoSubscription(filter="clients/%c"),))
    async with site.remote() as remote, site.local(OUT, mqtt=mqtt) as local:
        await until(lambda: counts(local).is_connected)
        assert set(local.doors["mqtt"].sessions.find(b"$bridge/cloud").subscriptions) == {b"up/#"}
        async with site.client(remote, "site1/#") as there, site.client(local) as here:
            await here.publish("up/a", b"x", qos=1)
            assert await site.take(there, 1) == [("site1/up/a", b"x")]


@pytest.mark.asyncio
async def test_no_client_can_take_a_bridges_session(site):
    async with site.local(OUT) as local:
        await until(lambda: local.doors["mqtt"].sessions.find(b"$bridge/cloud") is not None)
        with pytest.raises(aiomqtt.MqttError, match="Not authorized"):
            async with site.client(local, identifier="$bridge/cloud"):
                pass


@pytest.mark.asyncio
async def test_logs_in_with_a_password_from_a_file_and_from_the_environment(site, tmp_path, monkeypatch):

    monkeypatch.setenv("BRIDGE_TEST_PASSWORD", "secret")
    auth = AuthSettings(mqtt_anonymous=False, users={"b": UserSettings(password_env="BRIDGE_TEST_PASSWORD")})
    (tmp_path / "password").write_text("secret\n")
    async with site.remote(auth=auth):
        async with site.local(OUT, username="b", password_file=tmp_path / "password") as local:
            await until(lambda: counts(local).is_connected)
        async with site.local(OUT, username="b", password_env="BRIDGE_TEST_PASSWORD") as local:
            await until(lambda: counts(local).is_connected)
        async with site.local(OUT) as local:
            await until(lambda: counts(local).failures >= 2)
            assert not counts(local).is_connected


@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves what it cannot secure
async def test_is_secured_by_tls_both_ways_and_believes_nobody_else(site, tmp_path):
    certificate, key = issue(tmp_path / "server")
    ours, our_key = issue(tmp_path / "client", common_name="gw1")
    tls = {"certificate": certificate, "key": key, "client_ca": authority_file()}
    mqtt = MqttSettings(listen=[{"address": f"127.0.0.1:{site.remote_port}", "tls": tls}])
    mine = {"certificate": ours, "key": our_key}
    async with site.remote(mqtt=mqtt):
        for trusted in ({"ca": authority_file()}, {"verify": False}):
            async with site.local(OUT, tls=mine | trusted) as local:
                await until(lambda local=local: counts(local).is_connected)
        for refused in (mine | {"ca": authority_file("other")}, {"ca": authority_file()}):
            async with site.local(OUT, tls=refused) as local:
                await until(lambda local=local: counts(local).failures)
                assert not counts(local).is_connected
    gc.collect()


@pytest.mark.asyncio
async def test_status_is_told_where_our_own_door_ended_the_session(site):
    async with site.remote() as remote, site.local(OUT, status_topic="bridges/gw1") as local:
        await until(lambda: counts(local).is_connected)
        async with site.client(remote, "bridges/#") as there:
            assert await site.take(there, 1) == [("bridges/gw1", b"1")]
            (connection,) = local.doors["mqtt"].attachments
            connection.turn_out(local.clock.now_ms())
            assert await site.take(there, 2) == [("bridges/gw1", b"0"), ("bridges/gw1", b"1")]  # and it came back
