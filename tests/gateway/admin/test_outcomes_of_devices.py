from __future__ import annotations

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.admin.outcomes import NEVER_KEPT, ONE_WAY
from gateway.mqtt.inventory import NO_MEMBER
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.fates import fate_when_done

pytestmark = pytest.mark.asyncio


async def test_a_shared_group_tells_what_came_before_it_and_that_its_member_is_not_kept(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "other", "plant/#"):
        await publish(client, "amq.topic", "plant.1", "before the group", {"delivery_mode": 2})
        async with _client(gateway, "device") as device:
            await device.subscribe("$share/crew/plant/#", qos=1)
            await publish(client, "amq.topic", "plant.2", "for the group", {"delivery_mode": 2})
            await anext(device.messages)
            await device.unsubscribe("none")  # the acknowledgement came before its answer
            before, had = await _group_fates(client)
            assert (before["outcome"], had["outcome"]) == ("subscribed later", "acknowledged")
            assert (had["note"], had["by"]) == ("", "device")
    async with managed_gateway(tmp_path) as (gateway, client):
        before, had = await _group_fates(client)
        assert before["outcome"] == "acknowledged or subscribed later"  # another member may have been there, and left
        assert before["note"] == f"{NO_MEMBER}; {NEVER_KEPT}"
        assert (had["outcome"], had["note"], had["by"]) == ("acknowledged", "", "device")


async def _group_fates(client):
    found = await client.get("/api/lmq/messages", params={"queue": "%LMQ%mqtt%plant%|h", "at_ms": 0})
    told = [(await client.get(f"/api/lmq/messages/{item['id']}")).json() for item in found.json()["items"]]
    return [next(reader for reader in one["queues"][0]["readers"] if reader["kind"] == "group") for one in told]


def _forget_endings(data_dir):
    """Have a gateway that is not running know of no message that is done how it ended, as after a power cut."""
    (data_dir / "journals" / "endings").unlink()


async def test_a_session_tells_after_a_restart_what_it_had_and_what_it_may_have_had(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with _client(gateway, "device") as device:
            await device.subscribe("plant/#", qos=1)
            await publish(client, "amq.topic", "plant.1", "had", {"delivery_mode": 2})
            await anext(device.messages)
        await publish(client, "amq.topic", "plant.2", "waited", {"delivery_mode": 2})
    async with managed_gateway(tmp_path) as (_, client):
        found = await client.get("/api/lmq/messages", params={"queue": "%LMQ%mqtt%plant%|h", "at_ms": 0})
        had = await fate_when_done(client, found.json()["items"][0]["id"])
        assert (had["outcome"], had["note"]) == ("acknowledged", "filter plant/# at QoS 1")
    _forget_endings(tmp_path)
    async with managed_gateway(tmp_path) as (gateway, client):
        view = client._transport.app.state.view
        await view.activity.look()
        async with _client(gateway, "device") as device:
            await anext(device.messages)
        found = await client.get("/api/lmq/messages", params={"queue": "%LMQ%mqtt%plant%|h", "at_ms": 0})
        had, waited = [await fate_when_done(client, item["id"]) for item in found.json()["items"]]
        assert (had["outcome"], had["note"]) == ("acknowledged", f"filter plant/# at QoS 1; {ONE_WAY}")
        assert waited["outcome"] == "acknowledged"


async def test_who_subscribed_later_is_told_so_after_a_restart_too(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with subscribe(gateway, "first", "plant/#"):
            pass
        await publish(client, "amq.topic", "plant.1", "early", {"delivery_mode": 2})
        async with subscribe(gateway, "second", "plant/#"):
            pass
    async with managed_gateway(tmp_path) as (_, client):
        fates = await _fates_of_newest(client)
        assert (fates["first"]["stage"], fates["second"]["outcome"]) == ("waits", "subscribed later")
        assert (fates["second"]["from_ms"], fates["second"]["until_ms"]) == (0, 0)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_what_was_published_at_qos_0_is_told_as_sent_and_not_as_acknowledged(tmp_path, qos):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with _client(gateway, "one") as one, _client(gateway, "member") as member, _client(gateway, "p") as other:
            await one.subscribe("plant/#", qos=1)
            await member.subscribe("$share/crew/plant/#", qos=1)
            await other.publish("plant/1", b"x", qos=qos)
            for each in (one, member):
                await anext(each.messages)
                await each.unsubscribe("none")  # the acknowledgement came before its answer
        for _ in range(2):
            fates = await _fates_of_newest(client)
            expected = "acknowledged" if qos else "sent"
            assert (fates["one"]["outcome"], fates["mqtt:crew"]["outcome"]) == (expected, expected)
    async with managed_gateway(tmp_path) as (_, client):
        fates = await _fates_of_newest(client)
        assert (fates["one"]["outcome"], fates["mqtt:crew"]["outcome"]) == (expected, expected)


async def test_what_a_group_subscribed_to_at_qos_0_is_told_as_sent_also_after_a_restart(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with _client(gateway, "member") as member, _client(gateway, "p") as other:
            await member.subscribe("$share/crew/plant/#", qos=0)
            for qos in (1, 0):
                await other.publish("plant/1", b"x", qos=qos)
                await anext(member.messages)
        for nth in (1, 2):
            assert (await _fates_of_newest(client, nth))["mqtt:crew"]["outcome"] == "sent"
        assert len(gateway.broker.pop.endings.readers) == 1
    async with managed_gateway(tmp_path) as (_, client):
        for nth in (1, 2):
            assert (await _fates_of_newest(client, nth))["mqtt:crew"]["outcome"] == "sent"


async def test_what_groups_are_sent_of_qos_0_takes_no_room_among_endings(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with _client(gateway, "member") as member, _client(gateway, "p") as other:
            await member.subscribe("$share/crew/plant/#", qos=1)
            await other.publish("plant/1", b"x", qos=0)
            await anext(member.messages)
        assert (await _fates_of_newest(client))["mqtt:crew"]["outcome"] == "sent"
        assert not gateway.broker.pop.endings.readers


async def test_what_a_group_was_sent_at_qos_2_is_told_to_its_end_also_after_a_restart(tmp_path):
    async with (
        managed_gateway(tmp_path) as (gateway, client),
        _client(gateway, "member") as member,
        _client(gateway, "p") as other,
    ):
        await member.subscribe("$share/crew/plant/#", qos=2)
        await other.publish("plant/1", b"x", qos=2)
        await anext(member.messages)
        while (found := (await _fates_of_newest(client))["mqtt:crew"])["stage"] != "done":
            assert (found["stage"], found["by"]) == ("taken", "member")
        assert (found["outcome"], found["by"]) == ("acknowledged", "member")
    async with managed_gateway(tmp_path) as (_, client):
        found = (await _fates_of_newest(client))["mqtt:crew"]
        assert (found["outcome"], found["by"]) == ("acknowledged", "member")


async def test_what_was_too_large_for_its_client_is_told_as_dropped(tmp_path):
    dropped = "dropped: it was too large for its client"
    async with (
        managed_gateway(tmp_path) as (gateway, client),
        _client_5(gateway, "small", 100) as small,
        _client_5(gateway, "member", 100) as member,
    ):
        await small.subscribe("plant/#", qos=1)
        await member.subscribe("$share/crew/plant/#", qos=1)
        for size in (200, 1):
            await publish(client, "amq.topic", "plant.1", size * "x", {"delivery_mode": 2})
        for each in (small, member):
            await anext(each.messages)
            await each.unsubscribe("none")
        fates = await _fates_of_newest(client, 2)
        assert (fates["small"]["outcome"], fates["mqtt:crew"]["outcome"]) == (dropped, dropped)
    async with managed_gateway(tmp_path) as (_, client):
        assert (await _fates_of_newest(client, 2))["small"] == fates["small"]
        assert (await _fates_of_newest(client))["small"]["outcome"] == "acknowledged"
    _forget_endings(tmp_path)
    async with managed_gateway(tmp_path) as (_, client):
        fates = await _fates_of_newest(client, 2)
        assert fates["small"]["outcome"] == "acknowledged or dropped as too large for it"
        assert fates["mqtt:crew"]["outcome"] == dropped


async def test_a_clients_own_message_is_told_as_not_sent_to_it(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with _client_5(gateway, "talker") as talker, _client(gateway, "p") as other:
            await talker.subscribe("plant/#", options=SubscribeOptions(qos=1, noLocal=True))
            await talker.publish("plant/1", b"own", qos=1)
            await other.publish("plant/1", b"another's", qos=1)
            await anext(talker.messages)
            await talker.unsubscribe("none")
        assert (await _fates_of_newest(client, 2))["talker"]["outcome"] == "not sent: it is the client's own"
        assert (await _fates_of_newest(client))["talker"]["outcome"] == "acknowledged"


async def test_what_a_session_at_qos_0_missed_while_it_was_away_is_told_so_and_is_not_owed(tmp_path):
    async def outcomes_of(client):
        return [(await _fates_of_newest(client, nth))["device"]["outcome"] for nth in (3, 2, 1)]

    away = "not sent as it was not connected"
    async with managed_gateway(tmp_path) as (gateway, client):
        for number in range(2):
            async with _client(gateway, "device") as device:
                await device.subscribe("plant/#", qos=0)
                await publish(client, "amq.topic", "plant.1", f"had {number}")
                await anext(device.messages)
            await publish(client, "amq.topic", "plant.1", "missed")
            told = (await client.get("/api/lmq/devices/device")).json()
            assert (told["waiting"], told["subscriptions"][0]["waiting"]) == (0, 0)
        assert await outcomes_of(client) == [f"sent or {away}", "sent", away]
    async with managed_gateway(tmp_path) as (_, client):
        assert await outcomes_of(client) == [f"sent or {away}"] * 3
    _forget_endings(tmp_path)
    async with managed_gateway(tmp_path) as (_, client):
        unsure = f"sent, dropped as it read too slowly or {away}"
        assert await outcomes_of(client) == [unsure, unsure, unsure]


def _client(gateway, client_id):
    """Return a client of MQTT 3.1.1 with a session that stays."""
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(host, port, identifier=client_id, clean_session=False, timeout=60)


def _client_5(gateway, client_id, packet_bytes_max=0):
    """Return a client of MQTT 5 with a session that stays."""
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = 3_600
    if packet_bytes_max:
        properties.MaximumPacketSize = packet_bytes_max
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(
        host,
        port,
        identifier=client_id,
        protocol=aiomqtt.ProtocolVersion.V5,
        clean_start=True,
        properties=properties,
        timeout=60,
    )


async def _fates_of_newest(client, nth=1):
    """Return the readers of the newest message of plant/#, or of the `nth`, by their names."""
    found = (await client.get("/api/lmq/messages", params={"queue": "%LMQ%mqtt%plant%|h", "count": nth})).json()
    told = (await client.get(f"/api/lmq/messages/{found['items'][0]['id']}")).json()
    return {reader["reader"]: reader for reader in told["queues"][0]["readers"]}


async def test_a_session_that_came_later_is_said_to_have_come_later(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        async with subscribe(gateway, "early", "plant/#"):
            pass
        await publish(client, "amq.topic", "plant.1", "x")
        async with subscribe(gateway, "late", "plant/#"):
            pass
        found = await client.get("/api/lmq/messages", params={"queue": "%LMQ%mqtt%plant%|h", "at_ms": 0})
        (item,) = found.json()["items"]
        told = (await client.get(f"/api/lmq/messages/{item['id']}")).json()
        outcomes = {reader["reader"]: reader["outcome"] for reader in told["queues"][0]["readers"]}
        assert outcomes == {"early": None, "late": "subscribed later"}


async def test_when_one_was_acknowledged_and_who_was_there_is_known_after_a_restart_too(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        activity = client._transport.app.state.view.activity
        async with _client(gateway, "one") as one, _client(gateway, "member") as member:
            await one.subscribe("plant/#", qos=1)
            await member.subscribe("$share/crew/plant/#", qos=1)
            await publish(client, "amq.topic", "plant.1", "x", {"delivery_mode": 2})
            for each in (one, member):
                await anext(each.messages)
                await each.unsubscribe("none")  # the acknowledgement came before its answer
            await activity.look()
        before = await _fates_of_newest(client)
        assert before["mqtt:crew"]["by"] == "member"
        assert all(0 < one["from_ms"] <= one["until_ms"] for one in before.values())
    async with managed_gateway(tmp_path) as (_, client):
        await client._transport.app.state.view.activity.look()
        assert await _fates_of_newest(client) == before


async def test_a_look_at_a_group_that_ended_says_nothing_of_one_with_its_name_after_a_restart(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "other", "plant/#"):
        activity = client._transport.app.state.view.activity
        for body in ("for the first", "between them", "for the second"):
            if body != "between them":
                async with _client(gateway, "device") as device:
                    await device.subscribe("$share/crew/plant/#", qos=1)
                    await publish(client, "amq.topic", "plant.1", body, {"delivery_mode": 2})
                    await anext(device.messages)
                    await device.unsubscribe("none")  # the acknowledgement came before its answer
                    await activity.look()
                    if body == "for the first":
                        await device.unsubscribe("$share/crew/plant/#")
            else:
                await publish(client, "amq.topic", "plant.1", body, {"delivery_mode": 2})
    async with managed_gateway(tmp_path) as (gateway, client):
        await client._transport.app.state.view.activity.look()
        _, between, _ = await _group_fates(client)
        assert between["outcome"] == "acknowledged or subscribed later"
