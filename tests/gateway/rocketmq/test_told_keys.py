"""Queries by key where the store knows which messages may have one: the same answers as by reading, with few reads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.rocketmq.message_query import REPEATS_MS
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import NOW_MS, DoorSite, bodies_of

FOR_EVER = 2**63 - 1
MESSAGE_MS = 1_500  # from one to the next
SEGMENT = {"segment_bytes": 64 << 10}
WORDS = ["a", "b", "order42", "x" * 40, "ä"]
KINDS = [{}, {"indexType": "U"}, {"indexType": "T"}, {"_UNIQUE_KEY_QUERY": "true"}]


def ask(site, peer, topic, key, kind, count=32, span=(0, FOR_EVER)):
    ext = {"topic": topic, "key": key, "maxNum": count, "beginTimestamp": span[0], "endTimestamp": span[1]}
    peer.give(request_frame(12, opaque=5, **(ext | kind)))
    for _ in range(200):
        answers = peer.take()
        if answers:
            (answer,) = answers
            return answer.code, bodies_of(answer)
        site.turn()
    raise AssertionError("no answer")


def goes_on(kind, span):
    """Return whether such a question is answered from the oldest messages on, until some time after the first."""
    return span[0] > 0 and kind in ({"indexType": "U"}, {"_UNIQUE_KEY_QUERY": "true"})


def ask_all(site, peer, asked):
    """Return all answers; of an answer that may hold more than it must, only what it must."""
    found = []
    for topic, key, kind, count, span in asked:
        is_on = goes_on(kind, span)
        code, bodies = ask(site, peer, topic, key, kind, 32 if is_on else count, span)
        moments = {body: MESSAGE_MS * int(body[1:]) for body in bodies}
        last_ms = min(moments.values(), default=0) + REPEATS_MS if is_on else FOR_EVER
        found.append((code, [body for body in bodies if moments[body] <= last_ms]))
    return found


def make_files(site):
    for _ in range(600):
        site.store.flush()
        site.store.prepare()
    assert not site.store.keys.is_making


messages = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
        st.sampled_from(["u1", "u2", "a", "order42"]),
        st.integers(0, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)
questions = st.lists(
    st.tuples(
        st.sampled_from(["T", "%LMQ%q", "Other"]),
        st.sampled_from([*WORDS, "u1", "never", ""]),
        st.sampled_from(KINDS),
        st.sampled_from([1, 3, 32]),
        st.sampled_from([(0, FOR_EVER), (NOW_MS + 9_000, FOR_EVER), (NOW_MS + 4_000, NOW_MS + 20_000), (1, FOR_EVER)]),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.here(reason="of more messages than are asked for, those that are here are told first")
@given(written=messages, asked=questions, filler=st.integers(2, 9))
@settings(max_examples=12, deadline=None)
def test_answers_are_those_of_reading_all(tmp_path_factory, written, asked, filler):
    folder = tmp_path_factory.mktemp("told") / "data"
    site = DoorSite(folder, **SEGMENT)
    peer = site.connect()
    for number, (keys, unique, queue_id, is_light) in enumerate(written):
        site.now_ms = NOW_MS + number * MESSAGE_MS
        light = "INNER_MULTI_DISPATCH\x01%LMQ%q\x02" if is_light else ""
        properties = f"KEYS\x01{keys}\x02UNIQ_KEY\x01{unique}\x02TAGS\x01{keys[:1]}\x02{light}"
        peer.send(b"m%d" % number, e=str(queue_id), b="T" if number % 7 else "Other", properties=properties)
        for k in range(filler):
            peer.give(send_frame(b"x" * 3_000, e=str(k % 4), properties=f"KEYS\x01f{k}\x02UNIQ_KEY\x01f{k}\x02"))
        site.turn()
        peer.take()
    read = ask_all(site, peer, asked)
    make_files(site)
    assert ask_all(site, peer, asked) == read
    now_ms = site.now_ms
    site.close()
    site = DoorSite(folder, **SEGMENT)
    site.now_ms = now_ms
    assert ask_all(site, site.connect(), asked) == read
    site.close()


def fill(site, peer, count):
    for first in range(0, count, 64):
        site.now_ms += 1_000
        numbers = range(first, first + 64)
        peer.give(b"".join(send_frame(b"x" * 500, properties=f"KEYS\x01k{k}\x02UNIQ_KEY\x01u{k}\x02") for k in numbers))
        site.turn()
    peer.take()


@pytest.mark.here(reason="counts what is read, and what is on its way is read again")
@pytest.mark.parametrize("kind", [{}, {"_UNIQUE_KEY_QUERY": "true"}, {"indexType": "U"}])
def test_a_query_reads_only_what_may_have_its_key_and_the_newest_segment_also_after_a_start(
    tmp_path, engine_maker, kind
):
    site = DoorSite(tmp_path / "data", make_engine=engine_maker, **SEGMENT)
    fill(site, site.connect(), 2_560)
    make_files(site)
    now_ms = site.now_ms
    site.close()
    site = DoorSite(tmp_path / "data", make_engine=engine_maker, **SEGMENT)
    site.now_ms = now_ms
    peer = site.connect()
    seen = []

    class Counted:
        """The broker, with what is asked of it counted."""

        def __getattr__(self, name):
            return getattr(site.broker, name)

        def read(self, ref, offset, into, count, size):
            found = site.broker.read(ref, offset, into, count, size)
            seen.append(found)
            return found

        def read_offsets(self, ref, offsets, count, into):
            found = site.broker.read_offsets(ref, offsets, count, into)
            seen.append(into.count)
            return found

    site.door.queries._broker = Counted()
    key = "u7" if kind else "k7"
    code, bodies = ask(site, peer, "T", key, kind)
    assert (code, len(bodies)) == (0, 1)
    assert sum(seen) <= 1_025  # of 2,560: the newest stretch of 1,024 is read in any case
    seen.clear()
    assert ask(site, peer, "T", "never", kind)[0] == 22
    assert sum(seen) <= 1_024
    site.close()
