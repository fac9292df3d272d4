from __future__ import annotations

from gateway.mqtt.exact_records import (
    COMPLETE,
    NAME,
    NAME_HEAD,
    NOBODY,
    RECORD,
    SENT,
    TAKEN,
    Found,
    SentBefore,
    found_changes,
    mark_record,
    name_records,
    sent_changes,
)
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_SENT
from gateway.mqtt.session import Session


def test_a_mark_is_one_more_than_the_end_of_the_log_so_that_0_is_none():
    assert RECORD.unpack(mark_record(0)) == (NOBODY, TAKEN << 24, 1, 0)


def test_a_long_name_is_cut_into_records_that_make_it_again():
    name = bytes(range(100))
    records = name_records(7, name)
    assert [NAME_HEAD.unpack_from(record) for record in records] == [(7, NAME << 24)] * 3
    assert b"".join(record[NAME_HEAD.size :] for record in records) == name


def test_what_was_found_is_written_as_it_was_sent_and_how_far_it_came():
    found = Found(b"c")
    found.sent = {4: SentBefore(4, 3, 40, EXACT_SENT), 5: SentBefore(5, 3, 41, EXACT_COMPLETE)}
    assert list(found_changes(found)) == [
        (SENT << 24 | 3, 4, 40),
        (SENT << 24 | 3, 5, 41),
        (COMPLETE << 24, 5, 0),
    ]


def test_a_session_without_messages_on_their_way_has_no_changes():
    session = Session(b"c", b"", is_persistent=True)
    assert list(sent_changes(session)) == []
    session.open_window(4)
    assert list(sent_changes(session)) == []
