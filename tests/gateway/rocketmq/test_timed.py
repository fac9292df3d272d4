from __future__ import annotations

import base64
import contextlib

import pytest
from hypothesis import given, strategies as st

from core.properties import CANCEL, decode_properties
from core.schedule import timer
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.timed import _decode_handle, _read_moment
from lmq.remoting.message_codec import BatchItem, encode_batch
from tests.support.rocketmq import send_ext, send_frame
from tests.support.rocketmq_door import NOW_MS, DoorSite, bodies_of, records_of

DAY_MS = 86_400_000


def timed(key: str = "k", **said: object) -> str:
    return "".join(f"{name}\x01{value}\x02" for name, value in {"UNIQ_KEY": key, **said}.items())


def wait(site: DoorSite, ms: int) -> None:
    site.now_ms += ms
    site.broker.request_run(site.broker.timer)
    site.turn()
    while site.broker.has_work:
        site.turn()


def recall(peer, handle: str, topic: str = "T"):
    return peer.ask(370, topic=topic, recallHandle=handle, producerGroup="p")


@pytest.mark.parametrize(
    ("said", "delay_ms"),
    [
        ({"TIMER_DELAY_SEC": "3"}, 3_000),
        ({"TIMER_DELAY_MS": "2500"}, 2_500),
        ({"TIMER_DELIVER_MS": NOW_MS + 1_234}, 1_234),
        ({"TIMER_DELIVER_MS": NOW_MS + 9, "TIMER_DELAY_MS": "7", "TIMER_DELAY_SEC": "5"}, 5_000),
        ({"TIMER_DELAY_SEC": 100 * 86_400}, 100 * DAY_MS),
    ],
)
def test_a_timed_message_comes_at_its_moment_and_not_before(site, peer, said, delay_ms):
    answer = peer.send(b"later", e="2", properties=timed(**said, a="b"), j="1")
    assert (answer.code, answer.ext["queueId"], answer.ext["transactionId"]) == (0, "2", "k")
    wait(site, delay_ms - 1)
    assert peer.pull("T", queueId=2).code == 19
    wait(site, 1)
    (record,) = records_of(peer.pull("T", queueId=2))
    assert (record.body, record.queue_id, record.queue_offset, record.reconsume_times) == (b"later", 2, 0, 1)
    assert record.properties.pop(b"__CRC32#")
    out_ms = (NOW_MS + delay_ms - 1) // 1_000 * 1_000
    expected = {b"UNIQ_KEY": b"k", b"a": b"b", b"TIMER_OUT_MS": b"%d" % out_ms}
    assert record.properties == expected | {name.encode(): str(value).encode() for name, value in said.items()}


def test_what_waits_lies_where_official_tools_look_for_it_and_is_nobodys_to_read_or_send_to(site, peer):
    sent = peer.send(b"later", e="3", properties=timed(TIMER_DELAY_SEC="9"))
    assert peer.pull("rmq_sys_wheel_timer").code == 17
    assert peer.send(b"x", topic="rmq_sys_wheel_timer").code == 16
    (record,) = records_of(peer.ask(33, topic="T", offset=int(sent.ext["msgId"][16:], 16)))
    assert record.topic == b"rmq_sys_wheel_timer"
    assert (record.properties[b"REAL_TOPIC"], record.properties[b"REAL_QID"]) == (b"T", b"3")
    assert record.properties[b"TIMER_OUT_MS"] == b"%d" % (NOW_MS + 8_000)


@pytest.mark.parametrize("said", [{"TIMER_DELIVER_MS": NOW_MS}, {"TIMER_DELAY_SEC": "0"}, {"TIMER_DELAY_MS": "-5"}])
def test_a_moment_that_has_passed_is_now(peer, said):
    assert "recallHandle" not in peer.send(b"now", properties=timed(**said)).ext
    assert bodies_of(peer.pull("T")) == [b"now"]


@pytest.mark.parametrize(
    "said",
    [
        {"TIMER_DELIVER_MS": "soon"},
        {"TIMER_DELAY_SEC": " "},
        {"TIMER_DELAY_SEC": "1.5"},
        {"TIMER_DELAY_SEC": "9" * 400},
        {"TIMER_DELAY_SEC": 401 * 86_400},
        {"TIMER_DELIVER_MS": NOW_MS, "TIMER_DEL_UNIQKEY": "T+k"},
        {"TIMER_DELAY_SEC": "1", "LMQ_TOPIC": "a/b"},
    ],
)
def test_a_moment_that_is_none_or_too_far_off_is_refused(site, peer, said):
    answer = peer.send(b"x", topic="LMQ_PARENT" if "LMQ_TOPIC" in said else "T", e="0", properties=timed(**said))
    assert (answer.code, bool(answer.remark)) == (13, True)
    assert site.broker.timer.pending_count == 0


def test_a_run_of_many_moments_and_of_none_is_answered_each(site, peer):
    delays = [5, 0, 70_000, 5, 3]
    peer.give(
        b"".join(
            send_frame(b"%d" % number, e="0", properties=timed(f"k{number}", TIMER_DELAY_MS=delay))
            for number, delay in enumerate(delays)
        )
    )
    site.turn()
    assert [answer.ext["transactionId"] for answer in peer.take()] == ["k0", "k1", "k2", "k3", "k4"]
    wait(site, 70_000)
    assert bodies_of(peer.pull("T")) == [b"1", b"4", b"0", b"3", b"2"]


def test_light_queues_get_a_timed_message_when_it_comes(site, peer):
    peer.send(b"both", properties=timed(TIMER_DELAY_SEC="1", INNER_MULTI_DISPATCH="%LMQ%a"))
    peer.send(b"alone", topic="%LMQ%a", properties=timed(TIMER_DELAY_SEC="1"))
    assert [peer.pull(queue).code for queue in ("T", "%LMQ%a")] == [19, 19]
    wait(site, 1_000)
    assert bodies_of(peer.pull("T")) == [b"both"]
    assert bodies_of(peer.pull("%LMQ%a")) == [b"both", b"alone"]


def test_messages_of_one_batch_cannot_be_timed(peer):
    body = encode_batch([BatchItem(0, b"a", b""), BatchItem(0, b"b", b"TIMER_DELAY_SEC\x011\x02")])
    assert peer.ask(320, body, **send_ext(m="true")).code == 13


def test_a_message_that_is_recalled_does_not_come_and_the_others_do(site, peer):
    handles = [
        peer.send(b"%d" % number, properties=timed(f"k{number}", TIMER_DELAY_SEC="5")).ext["recallHandle"]
        for number in range(3)
    ]
    answer = recall(peer, handles[1])
    assert (answer.code, answer.ext["msgId"]) == (0, "k1")
    wait(site, 5_000)
    assert bodies_of(peer.pull("T")) == [b"0", b"2"]
    answer = recall(peer, handles[0])
    assert (answer.code, answer.remark) == (604, "recall failed, timestamp invalid")


def test_what_waits_and_what_was_recalled_outlive_a_restart(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    peer.send(b"yes", e="0", properties=timed("k1", TIMER_DELAY_SEC="5"))
    recall(peer, peer.send(b"no", e="0", properties=timed("k2", TIMER_DELAY_SEC="5")).ext["recallHandle"])
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    wait(site, 5_000)
    assert bodies_of(site.connect().pull("T")) == [b"yes"]
    site.close()


def handle_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("handle", "code"),
    [
        ("", 604),
        ("é", 604),
        ("!!!!", 604),
        (handle_of("v2 T lmq 1 k"), 604),
        (handle_of("v1 T lmq x k"), 604),
        (handle_of("v1 U lmq 1 k"), 604),
        (handle_of(f"v1 T other {NOW_MS + 5} k"), 604),
        (handle_of(f"v1 T lmq {NOW_MS + 500 * DAY_MS} k"), 604),
    ],
)
def test_a_handle_that_is_none_is_refused(peer, handle, code):
    peer.send(b"first")
    answer = recall(peer, handle)
    assert (answer.code, bool(answer.remark)) == (code, True)


def test_so_many_of_a_minute_can_be_recalled_and_no_more(site, peer, monkeypatch):
    monkeypatch.setattr(timer, "RECALLS_MAX", 2)
    handles = [
        peer.send(b"%d" % number, properties=timed(f"k{number}", TIMER_DELAY_SEC="5")).ext["recallHandle"]
        for number in range(4)
    ]
    assert [recall(peer, handle).code for handle in handles[:3]] == [0, 0, 2]
    taken_back = timed("k9", TIMER_DELAY_SEC="5", TIMER_DEL_UNIQKEY="T+k3")
    assert peer.send(b"0", properties=taken_back).code == 13
    far = peer.send(b"far", properties=timed("f", TIMER_DELAY_SEC="600")).ext["recallHandle"]
    assert recall(peer, far).code == 0  # of another minute
    wait(site, 5_000)
    wait(site, 60_000)
    assert sorted(bodies_of(peer.pull("T"))) == [b"2", b"3"]
    handle = peer.send(b"next", properties=timed("n", TIMER_DELAY_SEC="5")).ext["recallHandle"]
    assert recall(peer, handle).code == 0  # in the next minute there is room again


def test_a_recall_on_a_topic_that_is_not_there_is_refused(peer):
    assert recall(peer, handle_of(f"v1 nowhere lmq {NOW_MS + 5} k"), "nowhere").code == 17


@given(st.one_of(st.text(max_size=40), st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode())))
def test_any_text_is_a_handle_or_refused(text):
    with contextlib.suppress(CommandRefusedError):
        _, _, due_ms, _ = _decode_handle(text)
        assert due_ms >= 0


PIECES = st.lists(
    st.sampled_from(
        [b"TIMER_DELAY_SEC", b"TIMER_DELAY_MS", b"TIMER_DELIVER_MS", CANCEL, b"\x01", b"\x02", b"5", b"-7", b"x", b""]
    ),
    max_size=14,
).map(b"".join)


@given(PIECES)
def test_a_moment_is_read_as_the_map_of_the_properties_has_it(properties):
    said = decode_properties(properties)
    expected = NOW_MS
    for name, unit_ms, start_ms in (
        (b"TIMER_DELAY_SEC", 1_000, NOW_MS), (b"TIMER_DELAY_MS", 1, NOW_MS), (b"TIMER_DELIVER_MS", 1, 0),
    ):  # fmt: skip
        if name in said:
            digits = said[name].removeprefix(b"-")
            is_number = digits.isdigit() and len(digits) <= 15
            expected = max(start_ms + unit_ms * int(said[name]), 0) if is_number else -1
            expected = -1 if expected > 10**13 - 1 else expected
            break
    assert _read_moment(properties, NOW_MS) == (expected, CANCEL in said)
