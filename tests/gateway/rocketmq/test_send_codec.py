from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.properties import decode_properties
from gateway.rocketmq.send_codec import read_sends
from gateway.rocketmq.send_run import (
    HALF,
    REFUSED_BODY,
    REFUSED_DELAY,
    REFUSED_HALF,
    REFUSED_HALF_LATER,
    REFUSED_NO_GROUP,
    REFUSED_PROPERTIES,
    REFUSED_TEXT,
    RUN_MAX,
    TIMED,
    SendRun,
    UniqCounter,
)
from lmq.remoting.commands import HEADER_BINARY, HEADER_JSON, Command, encode_command
from lmq.remoting.frames import Frames, cut_frames
from tests.support.rocketmq import LOCALHOST, extra_of, read_run, request_frame, send_frame

BOTH = pytest.mark.parametrize("header_type", [HEADER_JSON, HEADER_BINARY])


def props(**items: str) -> str:
    return "".join(f"{name}\x01{value}\x02" for name, value in items.items())


@BOTH
@pytest.mark.parametrize("code", [10, 310])
def test_a_send_becomes_a_row_of_the_batch(header_type, code):
    run = read_run(
        send_frame(
            b"hello", code=code, header_type=header_type, opaque=-5 if header_type else 5, f="1", h="9", j="2", g="123"
        )
    )
    batch = run.batch
    assert batch.count == 1
    assert bytes(batch.buf[batch.body_start[0] : batch.body_end[0]]) == b"hello"
    assert (batch.flag[0], batch.sys_flag[0], batch.reconsume_times[0], batch.born_ms[0]) == (9, 1, 2, 123)
    assert batch.tag[0] == (-5 if header_type else 5)
    assert run.header_type[0] == header_type


@BOTH
def test_properties_are_kept_as_sent_less_what_is_not_the_producers(header_type):
    sent = props(
        UNIQ_KEY="U1",
        WAIT="true",
        TAGS="a",
        INNER_MULTI_QUEUE_OFFSET="1,2",
        POP_CK="x",
        LMQ_CLIENT="forged",
        Größe="5 €",
    )
    run = read_run(send_frame(header_type=header_type, properties=sent + "__CRC32#\x01123"))
    assert extra_of(run, 0).decode() == props(UNIQ_KEY="U1", TAGS="a", Größe="5 €")
    assert bytes(run.extra[run.uniq_start[0] : run.uniq_end[0]]) == b"U1"


@BOTH
def test_a_message_without_uniq_key_gets_one_of_its_own(header_type):
    run = read_run(send_frame(header_type=header_type) * 3)
    keys = {decode_properties(extra_of(run, i))[b"UNIQ_KEY"] for i in range(3)}
    assert len(keys) == 3
    assert all(len(key) == 32 and key.startswith(b"7F0000012A9F5A5A5A5A00000000") for key in keys)


def test_pieces_without_a_name_or_separator_are_left_out():
    run = read_run(send_frame(properties="junk\x02\x01x\x02\x02UNIQ_KEY\x01u\x02k\x01v"))
    assert extra_of(run, 0) == b"UNIQ_KEY\x01u\x02k\x01v\x02"


@BOTH
def test_targets_are_gathered_once_for_each_topic_queue_and_dispatch(header_type):
    frames = [("A", "0", ""), ("A", "1", ""), ("A", "0", ""), ("B", "0", ""), ("B", "0", "%LMQ%q"), ("A", "1", "")]
    data = b"".join(
        send_frame(
            topic=topic, e=queue, header_type=header_type, properties=props(INNER_MULTI_DISPATCH=names) if names else ""
        )
        for topic, queue, names in frames
    )
    run = read_run(data)
    got = [run.targets[run.batch.route_index[i]] for i in range(run.batch.count)]
    assert [(t.topic.decode(), str(t.queue_id), t.dispatch.decode()) for t in got] == frames
    assert len(run.targets) == 4
    assert (got[0].default_topic, got[0].default_queues) == (b"TBW102", 4)


def test_who_published_is_added_where_a_message_goes_beyond_its_topic():
    origin = b"LMQ_PROTOCOL\x01rocketmq\x02"
    data = send_frame(properties=props(UNIQ_KEY="u")) + send_frame(
        properties=props(UNIQ_KEY="u", INNER_MULTI_DISPATCH="%LMQ%a")
    )
    run = read_run(data + send_frame(properties=props(UNIQ_KEY="u", LMQ_TOPIC="a/b")), origin)
    assert [extra_of(run, i).endswith(origin) for i in range(3)] == [False, True, True]
    assert run.targets[2].space_topic == b"a/b"


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"properties": props(DELAY="0")}, 0),
        ({"properties": props(DELAY="-1")}, 0),
        ({"properties": props(DELAY="3")}, 0),
        ({"properties": props(DELAY="")}, 0),
        ({"properties": props(DELAY="1.5")}, REFUSED_DELAY),
        ({"properties": props(TRAN_MSG="true", PGROUP="p")}, 0),
        ({"properties": props(TRAN_MSG="true")}, REFUSED_NO_GROUP),
        ({"properties": props(TRAN_MSG="true", PGROUP="")}, REFUSED_NO_GROUP),
        ({"properties": props(TRAN_MSG="true", PGROUP="p", DELAY="1")}, REFUSED_HALF_LATER),
        ({"properties": props(TRAN_MSG="true", PGROUP="p", TIMER_DELAY_MS="1")}, REFUSED_HALF_LATER),
        ({"properties": props(TRAN_MSG="false")}, 0),
        ({"f": "4"}, REFUSED_NO_GROUP),
        ({"f": "8"}, REFUSED_HALF),
        ({"f": "12"}, REFUSED_HALF),
        ({"properties": props(a="x" * 32_700)}, REFUSED_PROPERTIES),
        ({"body": b"x" * 101}, REFUSED_BODY),
        ({"body": b"x" * 100}, 0),
        ({"body": b""}, 0),
    ],
)
def test_what_cannot_be_stored_is_marked(changes, refusal):
    run = read_run(send_frame(**changes), body_bytes_max=100)
    assert run.targets[run.batch.route_index[0]].refusal == refusal


def test_a_half_message_bears_its_key_as_that_of_its_transaction():
    said = send_frame(properties=props(UNIQ_KEY="u", TRAN_MSG="true", PGROUP="p"))
    given = send_frame(properties=props(TRAN_MSG="TRUE", PGROUP="p", long="x" * 5_000))
    run = read_run(said + given)
    assert [run.targets[run.batch.route_index[i]].delay_level for i in range(2)] == [HALF, HALF]
    assert extra_of(run, 0) == props(UNIQ_KEY="u", TRAN_MSG="true", PGROUP="p", __transactionId__="u").encode()
    key = bytes(run.extra[run.uniq_start[1] : run.uniq_end[1]])
    assert len(key) == 32
    assert extra_of(run, 1).endswith(b"UNIQ_KEY\x01%b\x02__transactionId__\x01%b\x02" % (key, key))


def test_what_a_consumer_sends_to_be_tried_again_is_no_half_message():
    run = read_run(send_frame(properties=props(TRAN_MSG="true", PGROUP="p", DELAY="3"), topic="%RETRY%g", j="1"))
    (target,) = run.targets
    assert (target.delay_level, target.refusal) == (3, 0)


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ({"TIMER_DELAY_SEC": "3"}, TIMED),
        ({"TIMER_DELIVER_MS": "3", "DELAY": "0"}, TIMED),
        ({"DELAY": "2", "TIMER_DELAY_MS": "3"}, 2),
        ({"TIMER_DELAY_MS": "3", "DELAY": "2"}, 2),
    ],
)
def test_a_moment_of_its_own_is_told_from_a_level_which_goes_first(said, level):
    assert read_run(send_frame(properties=props(**said))).targets[0].delay_level == level


def test_targets_differ_by_delay_level_and_by_how_often_a_retry_was_tried():
    run = read_run(
        b"".join(send_frame(properties=props(DELAY=level)) for level in ("1", "1", "0", "999999999999", "-1"))
        + send_frame(topic="%RETRY%g", j="3", l="16")
        + send_frame(topic="%RETRY%g", j="4", l="99999999999")
        + send_frame(topic="%RETRY%g", j="4", l="16")
        + send_frame(j="4")
    )
    assert [run.targets[run.batch.route_index[i]].delay_level for i in range(5)] == [1, 1, 0, 255, 0]
    retries = [run.targets[run.batch.route_index[i]] for i in range(5, 9)]
    assert [(to.reconsumes, to.reconsumes_max) for to in retries] == [(3, 16), (4, -1), (4, 16), (0, -1)]
    assert retries[3] is run.targets[run.batch.route_index[4]]


def test_what_the_broker_says_of_a_delayed_message_is_not_the_producers_to_say():
    run = read_run(send_frame(properties=props(UNIQ_KEY="u", REAL_TOPIC="X", REAL_QID="1", RETRY_TOPIC="T", REAL="r")))
    assert extra_of(run, 0) == props(UNIQ_KEY="u", RETRY_TOPIC="T", REAL="r").encode()


def test_properties_that_are_no_text_are_refused():
    frame = send_frame(header_type=HEADER_BINARY, properties=props(a="xxxx")).replace(b"xxxx", b"x\xff\xfex")
    run = read_run(frame)
    assert run.targets[0].refusal == REFUSED_TEXT


@BOTH
@pytest.mark.parametrize(
    "changes",
    [
        {"e": "x"},
        {"e": "9999999999"},
        {"d": ""},
        {"g": "-1"},
        {"f": "1.5"},
        {"h": " 1"},
        {"m": "true"},
        {"m": "1"},
        {"j": "y"},
    ],
)
def test_a_send_of_another_shape_ends_the_run(header_type, changes):
    run = read_run(send_frame(header_type=header_type) + send_frame(header_type=header_type, **changes))
    assert run.batch.count == 1


@BOTH
@pytest.mark.parametrize("batch", ["false", "False", "0", "no", ""])
def test_a_send_that_is_no_batch_is_read_however_it_says_so(header_type, batch):
    assert read_run(send_frame(header_type=header_type, m=batch) * 2).batch.count == 2


def test_a_send_without_a_required_field_ends_the_run():
    assert read_run(request_frame(310, b"", a="g", b="T")).batch.count == 0


def test_other_requests_and_batches_end_the_run():
    for other in (request_frame(34), send_frame(code=320)):
        assert read_run(send_frame() * 2 + other + send_frame()).batch.count == 2


def test_one_way_is_noted():
    run = read_run(send_frame(flag=2) + send_frame(flag=0))
    assert bool(run.is_one_way[0])
    assert not run.is_one_way[1]


def test_a_full_run_leaves_the_rest():
    data = send_frame() * (RUN_MAX + 3)
    frames = Frames()
    pos = cut_frames(data, 0, frames, 1 << 24)
    assert frames.count == RUN_MAX
    run = SendRun(100, 100, UniqCounter())
    run.begin(data, origin=b"", born_host=LOCALHOST, uniq_prefix=b"0" * 28)
    assert read_sends(frames, 0, run) == RUN_MAX
    cut_frames(data, pos, frames, 1 << 24)
    run.begin(data, origin=b"", born_host=LOCALHOST, uniq_prefix=b"0" * 28)
    assert read_sends(frames, 0, run) == 3


@BOTH
def test_headers_larger_than_the_buffers_fit(header_type):
    sent = props(UNIQ_KEY="u", a="\x03" * 70_000)
    run = read_run(send_frame(header_type=header_type, properties=sent) * 2)
    assert extra_of(run, 1).decode() == sent


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=8)


SAID_TO_US = {  # names that are no user's: docs/protocols/rocketmq.md, "Sends"
    "DELAY",
    "INNER_MULTI_DISPATCH",
    "INNER_MULTI_QUEUE_OFFSET",
    "PGROUP",
    "POP_CK",
    "REAL_QID",
    "REAL_TOPIC",
    "REPLY_TO_CLIENT",
    "TRAN_MSG",
    "UNIQ_KEY",
    "WAIT",
    "__CRC32#",
}


@given(
    st.dictionaries(TEXT.filter(bool), TEXT, max_size=4),
    st.sampled_from([HEADER_JSON, HEADER_BINARY]),
    st.binary(max_size=20),
)
def test_any_user_properties_survive(user, header_type, body):
    user = {
        name: value
        for name, value in user.items()
        if not name.startswith(("LMQ_", "TIMER_DE")) and name not in SAID_TO_US
    }
    text = "".join(f"{name}\x01{value}\x02" for name, value in user.items()) + "UNIQ_KEY\x01u\x02"
    run = read_run(send_frame(body, header_type=header_type, properties=text))
    assert extra_of(run, 0).decode() == text


@given(st.data(), st.sampled_from([HEADER_JSON, HEADER_BINARY]))
def test_a_damaged_send_is_a_row_or_ends_the_run(data, header_type):
    frame = bytearray(send_frame(header_type=header_type, properties=props(UNIQ_KEY="u", TAGS="é")))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(8, len(frame) - 1))] = data.draw(st.integers(0, 255))
    assert read_run(bytes(frame)).batch.count <= 1


def test_a_command_with_escapes_in_its_topic_is_left_to_the_parser():
    frame = encode_command(Command(310, ext={"b": "T\u00e9"}))
    assert read_run(frame).batch.count == 0


@pytest.mark.parametrize("said", [r"\u0074rue", r"\u0031", r"\u0054RUE"])
def test_a_batch_that_is_said_with_escapes_is_left_to_the_parser(said):
    for batch, count in (("false", 1), (said, 0)):
        header = send_frame(b"", m="BATCH")[8:].replace(b"BATCH", batch.encode())
        frame = (4 + len(header)).to_bytes(4) + len(header).to_bytes(4) + header
        assert read_run(frame).batch.count == count


def test_producer_says_the_fields_of_the_envelope_and_no_others_of_ours():
    said = dict.fromkeys(("LMQ_CORRELATION", "LMQ_CONTENT_TYPE", "LMQ_PAIR", "LMQ_FORMAT", "LMQ_RESPONSE_TOPIC"), "v")
    run = read_run(send_frame(properties=props(UNIQ_KEY="u", LMQ_AMQP="x", LMQ_USER="x", LMQ_TTL_MS="5", **said)))
    names = [piece.partition(b"\x01")[0].decode() for piece in extra_of(run, 0).split(b"\x02")[:-1]]
    assert set(names) == {"UNIQ_KEY", "LMQ_TTL_MS", *said}
