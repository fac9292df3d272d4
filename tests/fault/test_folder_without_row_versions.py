"""A data folder whose rows say no version is migrated at the start and loses nothing; a later version is refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from zlib import crc32

import pytest
from pamqp.commands import Basic, Queue

from core.errors import DataFolderUnusableError
from core.settings import StoreSettings
from tests.support import mqtt, mqtt_5
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt_door import World
from tests.support.rocketmq_door import DoorSite, bodies_of
from tests.support.sources import ROOT

OLD = ROOT / "tests" / "data" / "lmq-gateway-1-rows" / "folder.tar.gz"
SEGMENT_BYTES = 64 * 1024
TOPIC_BYTES = 5  # queues to read, queues to write, permissions
SETTINGS = StoreSettings(segment_bytes=SEGMENT_BYTES)


@pytest.fixture
def folder(tmp_path):
    with tarfile.open(OLD) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "data"


def versions_of(folder):
    """Return the versions of the rows, by table."""
    connection = sqlite3.connect(folder / "definitions.db")
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {name: [v for (v,) in connection.execute(f'SELECT DISTINCT version FROM "{name}"')] for name in names}
    connection.close()
    return found


def look_at_rocketmq(folder):
    site = DoorSite(folder, segment_bytes=SEGMENT_BYTES)
    peer = site.connect()
    assert bodies_of(peer.pull("Orders")) == [b"t-0", b"t-1", b"t-2"]
    made = json.loads(bytes(peer.ask(351, topic="Made").body))
    assert (made["readQueueNums"], made["writeQueueNums"]) == (3, 2)
    assert json.loads(bytes(peer.ask(352, group="GID_orders").body))["retryMaxTimes"] == 3
    assert peer.ask(14, consumerGroup="GID_orders", topic="Orders", queueId=0).ext["offset"] == "2"
    site.turn()
    site.close()


def look_at_mqtt(world):
    retained = world.connect(b"new").send(mqtt.subscribe(1, (b"plant/+/state", 0))).bodies()
    assert sorted(retained) == [b"retained-0", b"retained-1", b"retained-2"]
    reader = world.connect(b"durable", clean=False)
    durable = reader.take()
    assert durable[0] == mqtt.connack(session_present=True)
    bodies = [mqtt.parse_publish(one).body for one in durable[1:]]
    assert bodies[:4] == [b"temp-2", b"temp-3", b"temp-4", b"temp-5"]
    assert b"gone" in bodies  # the will, whose client was lost with the process
    five = world.dial().send(mqtt.connect_5(b"five", clean=False, properties=mqtt_5.encoded())).take()
    sent = [one for one in five if one[0] >> 4 == 3]
    assert [one[0] & 6 for one in sent] == [2] * 6  # as they were published
    device = world.connect(b"device", clean=False)
    device.take()
    device.send(mqtt.publish(b"plant/1/exact", b"exact", qos=2, packet_id=7, dup=True))
    assert device.take() == [mqtt.pubrec(7)]
    device.send(mqtt.pubrel(7))
    assert device.take() == [mqtt.pubcomp(7)]
    assert (bodies.count(b"exact"), reader.bodies()) == (1, [])


def look_at_amqp(world):
    client = world.client()
    declared = client.declare("work", durable=True, arguments={"x-message-ttl": 86_400_000})
    assert isinstance(declared, Queue.DeclareOk)
    client.publish(b"job-5", exchange="jobs", key="job.b")
    client.send(*[Basic.Get(queue="work", no_ack=True)] * 6)
    assert client.bodies() == [b"job-1", b"job-2", b"job-3", b"job-4", b"job-5"]


def test_every_session_queue_and_message_of_it_is_there(folder):
    look_at_rocketmq(folder)
    world = AmqpWorld(folder, is_sync=True, store_settings=SETTINGS)
    look_at_mqtt(world)
    look_at_amqp(world)
    world.flush()
    world.close()
    assert (folder / "format").read_text() == "lmq-gateway 2\n"
    found = versions_of(folder)
    assert {"mqtt_sessions", "mqtt_subscriptions", "amqp", "rocketmq_topics", "consumer_offsets"} <= found.keys()
    assert found.pop("amqp") == [3]
    assert found.pop("rocketmq_groups") == [2]
    assert {version for versions in found.values() for version in versions} == {1}


def test_topics_of_the_first_gateways_have_their_queues_and_are_not_ordered(folder):
    connection = sqlite3.connect(folder / "definitions.db")
    for key, value in connection.execute("SELECT key, value FROM rocketmq_topics").fetchall():
        assert len(value) > TOPIC_BYTES
        row = value[:TOPIC_BYTES]  # they wrote no more of a topic
        connection.execute("UPDATE rocketmq_topics SET value = ?, crc = ? WHERE key = ?", (row, crc32(key + row), key))
    connection.commit()
    connection.close()
    look_at_rocketmq(folder)
    look_at_rocketmq(folder)


def test_migration_that_a_kill_broke_off_is_done_again(folder, tmp_path):
    world = AmqpWorld(folder, is_sync=True, store_settings=SETTINGS)
    shutil.copytree(folder, tmp_path / "killed")  # before a commit
    world.close()
    look_at_rocketmq(tmp_path / "killed")
    again = AmqpWorld(tmp_path / "killed", is_sync=True, store_settings=SETTINGS)
    look_at_amqp(again)
    again.close()


def test_folder_of_a_later_version_is_refused_and_left_alone(folder):
    (folder / "format").write_text("lmq-gateway 3\n")
    before = (folder / "definitions.db").read_bytes()
    with pytest.raises(DataFolderUnusableError, match="format is 'lmq-gateway 3', this version reads 'lmq-gateway 2'"):
        World(folder, store_settings=SETTINGS)
    assert (folder / "definitions.db").read_bytes() == before


def test_row_of_a_later_version_is_refused_by_the_name_of_its_table(tmp_path):
    world = World(tmp_path / "d", store_settings=SETTINGS)
    world.client(b"durable", clean=False)
    world.flush()
    world.close()
    connection = sqlite3.connect(tmp_path / "d" / "definitions.db")
    ((key, value),) = connection.execute("SELECT key, value FROM mqtt_sessions")
    later = (2).to_bytes(4, "big")
    connection.execute("UPDATE mqtt_sessions SET version = 2, crc = ?", (crc32(key + value + later),))
    connection.commit()
    connection.close()
    said = "table mqtt_sessions has rows of version 2, this program reads them up to 1"
    with pytest.raises(DataFolderUnusableError, match=said):
        World(tmp_path / "d", store_settings=SETTINGS)
