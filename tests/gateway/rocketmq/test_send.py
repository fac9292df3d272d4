from __future__ import annotations

import errno
import shutil
import zlib

import pytest

from core.errors import DiskFullError
from core.lmq.queue_name import mqtt_queue_name
from core.message import FLAG_MARK
from core.queues.full_queues import Room
from core.store.dispatch_set import encode_names
from core.store.embedded import EmbeddedEngine
from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import HEADER_BINARY, HEADER_JSON
from lmq.remoting.message_codec import BatchItem, encode_batch
from tests.support.rocketmq import send_ext, send_frame
from tests.support.rocketmq_door import DoorSite, bodies_of, records_of

BOTH = pytest.mark.parametrize("header_type", [HEADER_JSON, HEADER_BINARY])


def dispatch(*names: str, **more: str) -> str:
    items = {"INNER_MULTI_DISPATCH": ",".join(names)} | more
    return "".join(f"{name}\x01{value}\x02" for name, value in items.items())


@BOTH
@pytest.mark.parametrize("code", [10, 310])
def test_a_send_is_stored_and_answered_with_its_place(peer, header_type, code):
    peer.send(b"first", code=code, header_type=header_type)
    answer = peer.send(b"second", code=code, header_type=header_type, properties="UNIQ_KEY\x01K\x02TAGS\x01a\x02")
    assert (answer.code, answer.header_type) == (0, header_type)
    assert (answer.ext["queueId"], answer.ext["queueOffset"], answer.ext["transactionId"]) == ("0", "1", "K")
    record = records_of(peer.pull("T", 1))[0]
    assert (record.body, record.topic, record.queue_id, record.queue_offset) == (b"second", b"T", 0, 1)
    assert record.properties[b"TAGS"] == b"a"
    assert record.physical_offset == int(answer.ext["msgId"][16:], 16)


@pytest.mark.parametrize("topic", ["RMQ_SYS_TRACE_TOPIC", "rmq_trace_of_my_own"])
def test_traces_of_messages_are_stored_as_any_message(peer, topic):
    trace = "Pub\x011790000000000\x01DefaultRegion\x01p\x01T\x01KEY\x02"
    answer = peer.send(trace.encode(), topic=topic, properties="KEYS\x01KEY\x02")
    assert answer.code == 0
    assert bodies_of(peer.pull(topic)) == [trace.encode()]
    found = peer.ask(12, topic=topic, key="KEY", maxNum=8, beginTimestamp=0, endTimestamp=1 << 60)
    assert (found.code, bodies_of(found)) == (0, [trace.encode()])


def test_an_answer_waits_until_the_message_is_durable(site, peer):
    peer.give(send_frame(b"x"))
    assert peer.take() == []
    site.turn()
    assert [answer.code for answer in peer.take()] == [0]


def test_what_came_before_the_end_is_answered_when_it_is_durable(site, peer):
    peer.give(send_frame(b"x"))
    peer.end()
    assert peer.take() == []
    assert not peer.transport.is_closed
    site.turn()
    assert [answer.code for answer in peer.take()] == [0]
    assert peer.transport.is_closed


def test_many_sends_of_one_read_are_answered_in_one_write(site, peer):
    peer.give(b"".join(send_frame(b"m%d" % i, opaque=i, e=str(i % 4)) for i in range(100)))
    site.turn()
    answers = peer.take()
    assert [answer.opaque for answer in answers] == list(range(100))
    assert all(answer.code == 0 for answer in answers)
    assert bodies_of(peer.pull("T", queueId=3)) == [b"m%d" % i for i in range(3, 100, 4)]
    assert site.door.metrics.messages_in == 100
    assert site.door.metrics.bytes_in == sum(len(b"m%d" % i) for i in range(100))


def test_one_way_sends_are_stored_and_not_answered(site, peer):
    peer.give(send_frame(b"x", flag=2) + send_frame(b"y", flag=2, topic="bad name"))
    site.turn()
    assert peer.take() == []
    assert bodies_of(peer.pull("T")) == [b"x"]


@BOTH
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "bad name"}, 29),
        ({"topic": "t" * 128}, 29),
        ({"topic": ""}, 29),
        ({"topic": "SELF_TEST_TOPIC"}, 16),
        ({"topic": "LMQ_DISPATCH_SET"}, 16),
        ({"topic": "LMQ_GAP"}, 16),
        ({"properties": dispatch("LMQ_DISPATCH_SET")}, 13),
        ({"properties": dispatch("%LMQ%a", "LMQ_GAP")}, 13),
        ({"topic": "New", "c": "NoTemplate"}, 17),
        ({"e": "99"}, 29),
        ({"properties": dispatch("plain")}, 13),
        ({"properties": dispatch("%LMQ%a", "")}, 13),
        ({"properties": dispatch("%LMQ%a b")}, 13),
        ({"properties": "DELAY\x01soon\x02"}, 13),
        ({"properties": "TIMER_DELAY_SEC\x01x\x02"}, 13),
        ({"topic": "LMQ_PARENT", "properties": "LMQ_TOPIC\x01a/b\x02DELAY\x011\x02"}, 13),
        ({"topic": "SCHEDULE_TOPIC_XXXX", "properties": "DELAY\x011\x02"}, 16),
        ({"properties": "TRAN_MSG\x01true\x02"}, 13),
        ({"f": "8"}, 13),
        ({"properties": "a\x01" + "x" * 32_700 + "\x02"}, 13),
        ({"topic": "LMQ_PARENT", "properties": "LMQ_TOPIC\x01a/+\x02"}, 13),
        ({"topic": "LMQ_PARENT", "properties": "LMQ_TOPIC\x01\x02"}, 13),
        ({"topic": "LMQ_PARENT", "properties": "LMQ_TOPIC\x01$SYS/broker/uptime\x02"}, 13),
        ({"topic": "LMQ_PARENT", "properties": dispatch("%LMQ%a", LMQ_TOPIC="a/b")}, 13),
        ({"e": "x"}, 1),
    ],
)
def test_a_send_that_is_refused_costs_nobody_else(site, peer, header_type, changes, code):
    peer.give(
        send_frame(b"before", opaque=1, header_type=header_type)
        + send_frame(b"bad", opaque=2, header_type=header_type, **changes)
        + send_frame(b"after", opaque=3, header_type=header_type)
    )
    site.turn()
    answers = {answer.opaque: answer for answer in peer.take()}
    assert {opaque: answer.code for opaque, answer in answers.items()} == {1: 0, 2: code, 3: 0}
    assert answers[2].remark
    assert bodies_of(peer.pull("T")) == [b"before", b"after"]


def test_a_body_over_the_limit_is_refused(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(body_bytes_max=10), make_engine=engine_maker)
    peer = site.connect()
    assert peer.send(b"x" * 11).code == 13
    assert peer.send(b"x" * 10).code == 0
    assert peer.send(b"").code == 0
    site.close()


def test_a_body_that_only_the_store_refuses_costs_nobody_else(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(body_bytes_max=16_000_000), make_engine=engine_maker)
    peer = site.connect()
    peer.give(
        send_frame(b"a", opaque=1)
        + send_frame(b"x" * (5 << 20), opaque=2)
        + send_frame(b"b", opaque=3)
        + send_frame(b"x" * (5 << 20), opaque=4, flag=2)
        + send_frame(b"c", opaque=5)
    )
    site.turn()
    assert sorted((answer.opaque, answer.code) for answer in peer.take()) == [(1, 0), (2, 13), (3, 0), (5, 0)]
    assert bodies_of(peer.pull("T")) == [b"a", b"b", b"c"]
    site.close()


def test_a_negative_queue_goes_round_all_queues(site, peer):
    queues = {peer.send(e="-1").ext["queueId"] for _ in range(8)}
    assert queues == {"0", "1", "2", "3"}


def test_a_dispatch_reaches_each_light_queue_once(peer):
    answer = peer.send(b"x", properties=dispatch("%LMQ%a", "%LMQ%b", "%LMQ%a"))
    assert answer.code == 0
    for queue in ("%LMQ%a", "%LMQ%b"):
        found = peer.pull(queue)
        assert bodies_of(found) == [b"x"]
        assert found.ext["maxOffset"] == "1"
    record = records_of(peer.pull("%LMQ%b"))[0]
    assert record.topic == b"T"
    assert record.light_offset(b"%LMQ%b") == 0
    assert record.properties[b"LMQ_PROTOCOL"] == b"rocketmq"


def test_routes_are_remembered_up_to_a_limit(site, peer):
    site.broker.caches.limit(10_000)
    for number in [*range(20), 0, 19]:
        assert peer.send(topic=f"T{number}").code == 0
    assert 0 < site.broker.caches.bytes_used()["rocketmq_routes"] <= 10_000
    assert bodies_of(peer.pull("T0")) == [b"hello"] * 2


def test_a_dispatch_to_a_thousand_queues_reaches_them_all(peer):
    names = [f"%LMQ%device-{i:04}-with-a-long-name" for i in range(1000)]
    assert peer.send(b"x", properties=dispatch(*names)).code == 0
    assert [bodies_of(peer.pull(name)) for name in (names[0], names[500], names[-1])] == [[b"x"]] * 3


class Full:
    """A queue without room."""

    def find_room(self, wanted: int) -> Room:
        return Room(0)

    def refuse(self, count: int) -> None:
        pass


def test_a_send_past_a_full_light_queue_is_answered_as_any_other(site, peer):
    site.broker.detours.full.add(site.broker.intern_queue(b"%LMQ%a"), Full())
    answer = peer.send(b"x", properties=dispatch("%LMQ%a", "%LMQ%b"))
    assert (answer.code, answer.ext["queueOffset"]) == (0, "0")
    assert bodies_of(peer.pull("%LMQ%b")) == [b"x"]
    assert site.broker.max_offset(site.broker.find_queue(b"%LMQ%a")) == 0


def test_a_send_to_a_light_queue_is_stored_there(peer):
    assert peer.send(b"x", topic="%LMQ%direct").code == 0
    record = records_of(peer.pull("%LMQ%direct"))[0]
    assert (record.body, record.topic) == (b"x", b"LMQ_PARENT")


def test_a_send_into_the_topic_space_reaches_those_who_bound_a_filter(site, peer):
    queue = mqtt_queue_name(b"a/+")
    site.broker.bind_filter(b"a/+", queue, hides_dollar=True)
    peer.ask(34, b'{"clientID":"dev-7"}')
    answer = peer.send(b"x", topic="LMQ_PARENT", properties="LMQ_TOPIC\x01a/b\x02unit\x01C\x02LMQ_CLIENT\x01forged\x02")
    assert answer.code == 0
    record = records_of(peer.pull(queue.decode()))[0]
    assert record.flag == FLAG_MARK | 1
    assert record.properties[b"LMQ_TOPIC"] == b"a/b"
    assert record.properties[b"LMQ_CLIENT"] == b"dev-7"
    assert record.properties[b"unit"] == b"C"


def test_compressed_bodies_are_inflated_where_other_doors_read_them(peer):
    body = zlib.compress(b"plain" * 100)
    peer.send(body, f="769")
    peer.send(body, f="769", properties=dispatch("%LMQ%a"))
    peer.send(b"other", properties=dispatch("%LMQ%a"))
    kept = peer.pull("T")
    assert b"plain" not in bytes(kept.body)[: len(body) + 150]
    assert [record.sys_flag & 1 for record in records_of(kept)] == [1, 0, 0]
    assert bodies_of(peer.pull("%LMQ%a")) == [b"plain" * 100, b"other"]
    assert peer.send(b"junk", f="769", properties=dispatch("%LMQ%a")).code == 13


@pytest.mark.parametrize("batch", ["0", "t", "tru", "False"])
def test_a_send_that_says_oddly_that_it_is_no_batch_is_stored_as_one_message(peer, batch):
    assert peer.ask(310, b"x", **send_ext(m=batch)).code == 0
    assert bodies_of(peer.pull("T")) == [b"x"]


@pytest.mark.parametrize(("code", "batch"), [(320, "true"), (310, "True"), (310, "1")])  # the last is of the C++ client
def test_a_batch_is_stored_as_its_messages_and_answered_with_all_their_ids(peer, code, batch):
    items = [BatchItem(i, b"m%d" % i, b"UNIQ_KEY\x01k%d\x02" % i) for i in range(3)]
    answer = peer.ask(code, encode_batch(items), **send_ext(m=batch))
    assert answer.code == 0
    assert answer.ext["transactionId"] == "k0,k1,k2"
    assert len(answer.ext["msgId"].split(",")) == 3
    assert answer.ext["queueOffset"] == "0"
    records = records_of(peer.pull("T"))
    assert [(record.body, record.flag) for record in records] == [(b"m0", 0), (b"m1", 1), (b"m2", 2)]


def test_a_batch_of_which_one_message_is_too_large_is_not_stored_at_all(peer):
    names = ",".join(f"%LMQ%q{i}" for i in range(40)).encode()
    large = b"INNER_MULTI_DISPATCH\x01%b\x02k\x01" % names
    large += b"v" * (32_600 - len(large)) + b"\x02"  # fits by itself, and not with its places in the queues
    items = [BatchItem(0, b"1", b""), BatchItem(0, b"2", large), BatchItem(0, b"3", b"")]
    assert peer.ask(320, encode_batch(items), **send_ext(m="true")).code == 13
    assert peer.ask(320, encode_batch(items[::2]), **send_ext(m="true")).code == 0
    assert bodies_of(peer.pull("T")) == [b"1", b"3"]
    assert peer.pull("%LMQ%q0").code == 19


def test_a_batch_for_which_the_disk_has_no_room_is_not_stored_at_all(tmp_path, engine_maker, monkeypatch):
    site = DoorSite(tmp_path / "data", make_engine=engine_maker, segment_bytes=64 * 1024)
    peer = site.connect()
    for _ in range(3):
        assert peer.send(b"x" * 10_000).code == 0
    with monkeypatch.context() as patched:  # no further segment can be made
        patched.setattr("os.posix_fallocate", refuse_room)
        items = [BatchItem(0, b"%d" % i + b"y" * 10_000, b"") for i in range(4)]
        assert peer.ask(320, encode_batch(items), **send_ext(m="true")).code == 2
        assert peer.send(b"small").code == 0
    assert peer.ask(320, encode_batch(items), **send_ext(m="true")).code == 0
    found = [body[:5] for offset in (0, 4) for body in bodies_of(peer.pull("T", offset))]
    assert found == [b"xxxxx", b"xxxxx", b"xxxxx", b"small", b"0yyyy", b"1yyyy", b"2yyyy", b"3yyyy"]
    site.close()


def refuse_room(*_arguments):
    raise OSError(errno.ENOSPC, "no space left on device")


class TornEngine(EmbeddedEngine):
    """Keeps what a kill leaves behind two messages of an append."""

    root = None

    def append_batch(self, batch, now_ms):
        if self.root is None:
            super().append_batch(batch, now_ms)
            return
        batch.count -= 1
        super().append_batch(batch, now_ms)
        batch.count += 1
        shutil.copytree(self.root, self.root.parent / "killed")
        raise DiskFullError("full")


@pytest.mark.at_once(reason="a kill in the middle of an append")
def test_a_batch_is_there_whole_or_not_at_all_after_a_kill(tmp_path):
    site = DoorSite(tmp_path / "data", make_engine=TornEngine)
    peer = site.connect()
    peer.send(b"before")
    site.engine.root = tmp_path / "data"
    items = [BatchItem(0, b"m%d" % i, b"") for i in range(3)]
    assert peer.ask(320, encode_batch(items), **send_ext(m="true")).code == 2
    site.close()
    again = DoorSite(tmp_path / "killed", make_engine=EmbeddedEngine)
    assert bodies_of(again.connect().pull("T")) == [b"before"]
    again.close()


@pytest.mark.parametrize(
    ("body", "ext", "code"),
    [
        (b"", {}, 13),
        (b"junk", {}, 13),
        (encode_batch([BatchItem(0, b"a", b""), BatchItem(0, b"b", b"DELAY\x011\x02")]), {}, 13),
        (encode_batch([BatchItem(0, b"a", b"x\x01\xff\x02")]), {}, 13),
        (encode_batch([BatchItem(0, b"a", b"")]), {"b": "bad name"}, 29),
        (encode_batch([BatchItem(0, b"a", b"")]), {"b": "LMQ_DISPATCH_SET"}, 16),
        (encode_batch([BatchItem(0, b"a", b"")]), {"e": "x"}, 1),
        (encode_batch([BatchItem(0, b"a", b"")]), {"b": "%RETRY%g"}, 13),
    ],
)
def test_a_batch_that_is_refused_is_not_stored_at_all(peer, body, ext, code):
    assert peer.ask(320, body, **(send_ext(m="true") | ext)).code == code
    peer.send(b"only")
    assert bodies_of(peer.pull("T")) == [b"only"]


def test_a_forged_dispatch_set_is_refused_and_moves_no_queue(tmp_path, engine_maker):
    forged = b"".join(n.to_bytes(4, "big") for n in (1, 1, 8)) + encode_names([b"%LMQ%a"]) + b"\x63"
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    for code in (10, 310):
        answer = peer.send(forged, code=code, topic="LMQ_DISPATCH_SET")
        assert (answer.code, answer.remark) == (16, "Sending message to topic[LMQ_DISPATCH_SET] is forbidden.")
    peer.send(forged, properties="LMQ_SET\x010\x02")
    assert peer.send(forged, topic="%LMQ%LMQ_DISPATCH_SET").code == 0  # a light queue of that name is one like others
    peer.send(b"mine", properties=dispatch("%LMQ%a"))
    assert peer.ask(105, topic="LMQ_DISPATCH_SET").code == 17
    assert peer.pull("LMQ_DISPATCH_SET").code == 17
    site.close()
    shutil.rmtree(tmp_path / "d" / "index")
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    assert bodies_of(peer.pull("%LMQ%a")) == [b"mine"]
    assert site.store.max_offset(site.store.find_queue(b"%LMQ%a")) == 1
    assert site.store.report.entries_lost == 0
    site.close()


@pytest.mark.at_once(reason="counts flushes up to the answers")
def test_a_send_that_makes_a_topic_is_answered_when_the_topic_is_written_down(site, peer):
    durability = site.engine.durability
    site.turn()
    peer.give(send_frame(b"x", topic="Made"))
    assert durability.begin_flush()  # not the log alone
    site.store.flush()
    peer.give(send_frame(b"y", topic="Made"))
    assert peer.take() == []
    durability.end_flush(None)
    assert [answer.code for answer in peer.take()] == [0]
    durability.begin_flush()
    site.store.flush()
    durability.end_flush(None)
    assert [answer.code for answer in peer.take()] == [0]


def test_topics_that_sends_made_are_there_after_a_restart(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    site.connect().send(b"x", topic="Kept", d="2")
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    assert b'"writeQueueNums":2' in bytes(peer.ask(105, topic="Kept").body)
    assert bodies_of(peer.pull("Kept")) == [b"x"]
    site.close()


@BOTH
def test_sends_are_refused_as_by_a_busy_broker_while_the_disk_is_low_and_pulls_go_on(site, peer, header_type):
    peer.send(b"before")
    site.set_free(0)
    peer.give(b"".join(send_frame(b"m", opaque=i, header_type=header_type) for i in (1, 2)) + send_frame(b"w", flag=2))
    answers = peer.take()
    assert [(answer.code, answer.opaque) for answer in answers] == [(2, 1), (2, 2)]
    assert answers[0].remark.startswith("[REJECTREQUEST]system busy")
    assert "disk" in answers[0].remark
    assert bodies_of(peer.pull("T")) == [b"before"]
    assert site.door.metrics.refused["low_on_disk"] == 2
    assert site.door.metrics.dropped["low_on_disk"] == 1
    site.set_free(1 << 40)
    assert peer.send(b"after").code == 0
    assert bodies_of(peer.pull("T", 1)) == [b"after"]


def test_a_batch_is_refused_as_a_whole_while_the_disk_is_low(site, peer):
    site.set_free(0)
    body = encode_batch([BatchItem(0, b"1", b""), BatchItem(0, b"2", b"")])
    assert peer.send(body, code=320, m="true").code == 2
    peer.give(send_frame(body, code=320, m="true", flag=2))
    assert peer.take() == []
    assert site.door.metrics.dropped["low_on_disk"] == 2
    site.set_free(1 << 40)
    assert peer.pull("T").code != 0


def test_a_send_into_the_topic_space_is_counted_there_and_others_are_not(site, peer):
    site.broker.bind_filter(b"a/+", mqtt_queue_name(b"a/+"), hides_dollar=True)
    into = {"topic": "LMQ_PARENT", "properties": "LMQ_TOPIC\x01a/b\x02"}
    peer.give(b"".join(send_frame(b"x", opaque=i, **said) for i, said in enumerate(({}, into, into, {}), 1)))
    site.turn()
    topics = site.broker.flows.topics
    assert (topics.published_in, topics.published_out) == (2, 2)
