"""A data folder with rows as this version writes them is kept, and stays readable, whatever a later version changes.

`python -m tests.fault.test_folder_of_today FOLDER` writes it anew; its README says when that is due.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tarfile
from pathlib import Path

import pytest
from pamqp.commands import Basic, Exchange, Queue

from core.row_format import FIRST
from core.settings import StoreSettings
from core.store.data_lock import FORMAT
from gateway.amqp.definition_rows import ROWS as AMQP_ROWS
from gateway.mqtt.session_rows import WILL_ROWS
from gateway.rocketmq.group_table import ROWS as GROUP_ROWS
from gateway.rocketmq.topic_table import ROWS as TOPIC_ROWS
from tests.support import mqtt, mqtt_5
from tests.support.amqp_door import AmqpWorld
from tests.support.rocketmq_door import DoorSite, bodies_of
from tests.support.rocketmq_pop import ack, pop
from tests.support.sources import ROOT

KEPT = ROOT / "tests" / "data" / "lmq-gateway-2-rows" / "folder.tar.gz"
SEGMENT_BYTES = 64 * 1024
SETTINGS = StoreSettings(segment_bytes=SEGMENT_BYTES)
OTHERS = {"amqp": AMQP_ROWS, "mqtt_wills": WILL_ROWS, "rocketmq_groups": GROUP_ROWS, "rocketmq_topics": TOPIC_ROWS}
GROUP = {"groupName": "GID_orders", "retryMaxTimes": 3, "consumeMessageOrderly": True}
ALL_AND_RED = {"x-match": "all", "colour": "red"}


def make(folder):
    """Write the folder: what its README says."""
    site = DoorSite(folder, segment_bytes=SEGMENT_BYTES)
    peer = site.connect()
    peer.ask(17, topic="Orders", readQueueNums=1, writeQueueNums=1, perm=6, topicFilterType="SINGLE_TAG")
    peer.ask(200, json.dumps(GROUP).encode())
    for number in range(4):
        peer.send(b"t-%d" % number, topic="Orders")
    peer.ask(15, consumerGroup="GID_orders", topic="Orders", queueId=0, commitOffset=2)
    popped = pop(peer, "Orders", consumerGroup="GID_pop", invisibleTime=3_600_000)
    for message in popped[:2]:
        assert ack(peer, message, "Orders", consumerGroup="GID_pop").code == 0
    site.turn()
    site.close()
    world = AmqpWorld(folder, is_sync=True, store_settings=SETTINGS)
    world.connect(b"reader", clean=False).send(mqtt.subscribe(1, (b"plant/#", 1)))
    device = world.connect(b"device", clean=False)
    device.send(mqtt.publish(b"plant/1/state", b"kept", qos=1, packet_id=1, retain=True))
    device.send(mqtt.publish(b"plant/1/exact", b"exact", qos=2, packet_id=7))
    world.connect(b"willing", clean=False, will=(b"plant/will", b"gone", 1, False))
    client = world.client()
    client.declare("work", durable=True)
    client.call(Exchange.Declare(exchange="jobs", exchange_type="headers", durable=True))
    client.call(Queue.Bind(queue="work", exchange="jobs", arguments=ALL_AND_RED))
    for body, colour in ((b"job-0", "red"), (b"job-1", "blue"), (b"job-2", "red")):
        client.publish(body, exchange="jobs", headers={"colour": colour}, delivery_mode=2)
    world.flush()
    world.close()


def look_at_rocketmq(folder):
    site = DoorSite(folder, segment_bytes=SEGMENT_BYTES)
    peer = site.connect()
    assert bodies_of(peer.pull("Orders")) == [b"t-0", b"t-1", b"t-2", b"t-3"]
    group = json.loads(bytes(peer.ask(352, group="GID_orders").body))
    assert {name: group[name] for name in GROUP} == GROUP
    assert peer.ask(14, consumerGroup="GID_orders", topic="Orders", queueId=0).ext["offset"] == "2"
    site.now_ms += 3_600_000
    again = pop(peer, "Orders", consumerGroup="GID_pop")
    assert [(one.body, one.attempts) for one in again] == [(b"t-2", 1), (b"t-3", 1)]
    site.turn()
    site.close()


def look_at_mqtt(world):
    new = world.connect(b"new").send(mqtt.subscribe(1, (b"plant/1/state", 0)))
    assert new.bodies() == [b"kept"]
    reader = world.connect(b"reader", clean=False)
    answer, *packets = reader.take()
    assert answer == mqtt.connack(session_present=True)
    assert [mqtt.parse_publish(one).body for one in packets] == [b"kept", b"exact", b"gone"]
    device = world.connect(b"device", clean=False)
    device.take()
    device.send(mqtt.publish(b"plant/1/exact", b"exact", qos=2, packet_id=7, dup=True), mqtt.pubrel(7))
    assert device.take() == [mqtt.pubrec(7), mqtt.pubcomp(7)]
    assert reader.bodies() == []
    assert mqtt_5.enter(world, b"five", filters=[(b"plant/#", 2)])


def look_at_amqp(world):
    client = world.client()
    client.publish(b"job-3", exchange="jobs", headers={"colour": "red"})
    client.publish(b"job-4", exchange="jobs", headers={"colour": "blue"})
    client.send(*[Basic.Get(queue="work", no_ack=True)] * 4)
    assert client.bodies() == [b"job-0", b"job-2", b"job-3"]


@pytest.fixture(params=["kept", "made"])
def folder(request, tmp_path):
    """The folder that is kept, and one that this version made."""
    if request.param == "made":
        make(tmp_path / "data")
    else:
        with tarfile.open(KEPT) as packed:
            packed.extractall(tmp_path, filter="data")
    return tmp_path / "data"


def test_all_of_it_is_there(folder):
    look_at_rocketmq(folder)
    world = AmqpWorld(folder, is_sync=True, store_settings=SETTINGS)
    look_at_mqtt(world)
    look_at_amqp(world)
    world.close()


def test_versions_of_the_rows_are_those_of_today(folder):
    """Where this fails since a version was raised, `tests/data/lmq-gateway-2-rows/README.md` says what to do."""
    assert (folder / "format").read_text() == f"{FORMAT}\n"
    connection = sqlite3.connect(folder / "definitions.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert len(tables) >= 12
    assert OTHERS.keys() <= set(tables)
    for table in tables:
        found = connection.execute(f'SELECT DISTINCT version FROM "{table}"').fetchall()
        assert (table, found) == (table, [(OTHERS.get(table, FIRST).version,)])
    connection.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
