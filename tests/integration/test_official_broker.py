"""An official broker that is given our commit log alone serves its queues, light ones too.

It runs where `make bench-peers` got the broker's archives (build/peers/rocketmq) and a Java is there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time

import pytest

from core.settings import RetentionSettings, StoreSettings
from lmq.remoting.commands import decode_header
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.message_codec import decode_records
from tests.benchmarks.scenarios.peers import FETCHED, JAVA_OPTIONS, find_rocketmq
from tests.support.log_builder import read_plainly
from tests.support.rocketmq import request_frame
from tests.support.store import NOW_MS, give_back, light, open_store, publish, read_queue

SEGMENT_BYTES = 1 << 20
START_S = 60
PULL, MAX_OFFSET, MIN_OFFSET = 11, 30, 31
SUCCESS, MOVED = 0, {20, 21}  # nothing there; the offset is another


@pytest.fixture
def official(tmp_path):
    """Return a function that starts an official broker over a copy of a commit log, and gives its port."""
    processes = []

    def start(commit_log, topics):
        home = tmp_path / "official"
        shutil.copytree(commit_log, home / "store" / "commitlog")
        rows = ",".join(f'"{name}":{{"topicName":"{name}","readQueueNums":8,"perm":6}}' for name in topics)
        (home / "store" / "config").mkdir()
        (home / "store" / "config" / "topics.json").write_text(f'{{"topicConfigTable":{{{rows}}}}}')
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            two.bind(("127.0.0.1", 0))
            port, ha_port = one.getsockname()[1], two.getsockname()[1]
        settings = {
            "brokerIP1": "127.0.0.1",
            "listenPort": port,
            "haListenPort": ha_port,
            "storePathRootDir": home / "store",
            "mappedFileSizeCommitLog": SEGMENT_BYTES,
            "enableLmq": "true",
            "enableMultiDispatch": "true",
        }
        (home / "conf").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = ["java", *JAVA_OPTIONS, f"-Duser.home={home}", "-cp", f"{FETCHED / 'rocketmq' / 'lib'}/*"]
        command += ["org.apache.rocketmq.broker.BrokerStartup", "-c", "conf"]
        with (home / "log").open("wb") as log:
            processes.append(subprocess.Popen(command, cwd=home, env={"ROCKETMQ_HOME": str(home)}, stdout=log))
        deadline = time.monotonic() + START_S
        while "boot success" not in (home / "log").read_text():
            assert time.monotonic() < deadline, (home / "log").read_text()
            time.sleep(0.1)  # noqa: TID251 - another process starts
        return port

    yield start
    for process in processes:
        process.kill()
        process.wait()


def ask(port, code, **ext):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(request_frame(code, **ext))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            data += sock.recv(1 << 20)
    frames = Frames()
    cut_frames(data, 0, frames, 1 << 26)
    body_at = frames.header_end[0]
    return decode_header(frames.header_type[0], data[frames.header_start[0] : body_at], data[body_at:])


def pull_all(port, topic, queue_id):
    wanted = int(ask(port, MAX_OFFSET, topic=topic, queueId=queue_id).ext["offset"])
    found = []
    offset = 0
    while offset < wanted:
        answer = ask(
            port, PULL, consumerGroup="g", topic=topic, queueId=queue_id, queueOffset=offset, maxMsgNums=32,
            sysFlag=4, commitOffset=0, suspendTimeoutMillis=0, subscription="*", subVersion=0, expressionType="TAG",
        )  # fmt: skip
        assert answer.code == SUCCESS or (answer.code in MOVED and int(answer.ext["nextBeginOffset"]) > offset)
        offset = int(answer.ext["nextBeginOffset"])
        found += [record.body for record in decode_records(bytes(answer.body))]
    return found


@pytest.mark.slow
@pytest.mark.skipif(find_rocketmq() is None, reason="the official broker was not fetched (make bench-peers)")
def test_an_official_broker_serves_the_light_queues_of_our_log(tmp_path, official):
    store = open_store(tmp_path / "ours", StoreSettings(segment_bytes=SEGMENT_BYTES))
    filters, queue = light("mqtt%a%|p", "amqp%|2f%q")
    both = store.make_route(b"LMQ_PARENT", 0, b"LMQ_TOPIC\x01a/b\x02", [filters, queue])
    only = store.make_route(b"LMQ_PARENT", 0, b"LMQ_TOPIC\x01a/c\x02", [filters])
    wide = store.make_route(b"LMQ_PARENT", 0, b"", light(*(f"wide{number}" for number in range(1_000))))
    own = store.make_route(b"Mine", 3, b"", [])
    expected = {("LMQ_PARENT", 0): [], (filters.decode(), 0): [], (queue.decode(), 0): [], ("Mine", 3): []}
    for number in range(3_000):
        route = (both, only, own, wide)[number % 4 if number % 100 else 3]
        body = b"%d." % number * 60
        publish(store, route, body)
        keys = [("Mine", 3)] if route is own else [("LMQ_PARENT", 0)]
        keys += [(name.decode(), 0) for name in route.dispatch.names] if route in {both, only} else []
        for key in keys:
            expected[key].append(body)
    store.close()
    assert len(list((tmp_path / "ours" / "commitlog").iterdir())) > 1
    port = official(tmp_path / "ours" / "commitlog", ["LMQ_PARENT", "Mine"])
    assert {key: pull_all(port, *key) for key in expected} == expected
    assert pull_all(port, "%LMQ%wide7", 0) == []  # an interned set is ours alone: such messages are in their topic


@pytest.mark.slow
@pytest.mark.skipif(find_rocketmq() is None, reason="the official broker was not fetched (make bench-peers)")
def test_an_official_broker_walks_over_gaps_and_serves_what_is_left(tmp_path, official):
    settings = StoreSettings(segment_bytes=SEGMENT_BYTES, retention=RetentionSettings(age_hours=1))
    store = open_store(tmp_path / "ours", settings)
    kept, idle = light("mqtt%kept", "mqtt%idle")
    held = store.make_route(b"LMQ_PARENT", 0, b"LMQ_TOPIC\x01a\x02", [kept, idle])
    other = store.make_route(b"LMQ_PARENT", 0, b"LMQ_TOPIC\x01b\x02", [idle])
    wide = store.make_route(b"LMQ_PARENT", 0, b"", light(*(f"wide{number}" for number in range(1_000))))
    own = store.make_route(b"Mine", 3, b"", [])
    for number in range(3_000):
        route = held if number % 300 == 0 else (other, own, wide)[number % 3]
        publish(store, route, b"%d " % number + b"x" * 900)
    store.flush()
    store.prepare()
    give_back(store, NOW_MS + 2 * 3_600_000, (store.find_queue(kept), 1))
    assert store.retention.bytes_punched > 0
    ours = {key: [body for _, body in read_queue(store, key)] for key in (kept, idle)}
    store.close()
    left = list(read_plainly(tmp_path / "ours"))
    assert 10 < len(left) < 2_000
    port = official(tmp_path / "ours" / "commitlog", ["LMQ_PARENT", "Mine"])
    for name in (kept, idle):
        bodies = [
            record.body for record in left if name in record.properties.get(b"INNER_MULTI_DISPATCH", b"").split(b",")
        ]
        assert pull_all(port, name.decode(), 0) == bodies
        assert set(ours[name]) <= set(bodies)
        first, end = (
            int(ask(port, code, topic=name.decode(), queueId=0).ext["offset"]) for code in (MIN_OFFSET, MAX_OFFSET)
        )
        assert end - first == len(bodies)  # it numbers what is left without the gaps, from the first one's offset on
    assert [b"%d" % number for number in range(300, 3_000, 300)] == [body.split()[0] for body in ours[kept]]
    for topic, queue_id in (("LMQ_PARENT", 0), ("Mine", 3)):
        bodies = [record.body for record in left if (record.topic == "Mine") == (topic == "Mine")]
        assert pull_all(port, topic, queue_id) == bodies


@pytest.mark.slow
@pytest.mark.skipif(find_rocketmq() is None, reason="the official broker was not fetched (make bench-peers)")
def test_an_official_broker_walks_over_what_was_lost_and_accepted(tmp_path, official):
    store = open_store(tmp_path / "ours", StoreSettings(segment_bytes=SEGMENT_BYTES))
    (queue,) = light("mqtt%a")
    route = store.make_route(b"LMQ_PARENT", 0, b"LMQ_TOPIC\x01a\x02", [queue])
    for number in range(6_000):
        publish(store, route, b"%d " % number + b"x" * 900)
    store.close()
    files = sorted((tmp_path / "ours" / "commitlog").iterdir())
    assert len(files) > 5
    files[1].unlink()
    os.truncate(files[3], 400_000)
    files[-1].unlink()
    store = open_store(tmp_path / "ours", StoreSettings(segment_bytes=SEGMENT_BYTES, accept_loss=True))
    left = [body for _, body in read_queue(store, queue)]
    assert 2_000 < len(left) < 5_000
    publish(store, route, b"after it")
    store.close()
    port = official(tmp_path / "ours" / "commitlog", ["LMQ_PARENT"])
    assert pull_all(port, queue.decode(), 0) == [*left, b"after it"]
    assert pull_all(port, "LMQ_PARENT", 0) == [*left, b"after it"]
