from __future__ import annotations

import errno
import logging
import os

import pytest

from core.errors import FlushFailedError, StoreClosedError
from core.store.durability import Durability
from tests.support.store import open_store, publish as publish_on


class Requests:
    def __init__(self):
        self.flushes = 0

    def request_flush(self):
        self.flushes += 1


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path)
    yield store
    store.close()


def make_durability(store, *, is_sync=True):
    durability = Durability(store, is_sync=is_sync)
    requests = Requests()
    durability.request_flush = requests.request_flush
    return durability, requests


def publish(store, *bodies):
    publish_on(store, store.make_route(b"T", 0, b"", []), *bodies)


def flush(store, durability):
    durability.keep_all()
    store.begin_flush(is_all=durability.begin_flush()).run()
    store.end_flush()
    durability.end_flush(None)


def test_durable_means_after_the_sync_that_covers_what_was_written_before(store):
    durability, requests = make_durability(store)
    told = []
    publish(store, b"1")
    durability.when_durable(lambda _: told.append(1))
    assert (told, requests.flushes) == ([], 1)
    durability.begin_flush()
    publish(store, b"2")
    durability.when_durable(lambda _: told.append(2))
    store.flush()
    durability.end_flush(None)
    assert (told, requests.flushes) == ([1], 2)
    durability.begin_flush()
    store.flush()
    durability.end_flush(None)
    assert told == [1, 2]


def test_who_asks_while_others_are_told_is_told_after_them(store):
    durability, _ = make_durability(store)
    told = []

    def ask_again(_):
        told.append(1)
        durability.when_durable(lambda _: told.append(4))

    publish(store, b"1")
    durability.when_durable(ask_again)
    durability.when_durable(lambda _: told.append(2))
    durability.when_durable(lambda _: told.append(3))
    durability.begin_flush()
    store.flush()
    durability.end_flush(None)
    assert told == [1, 2, 3, 4]


def test_many_are_told_some_at_a_time_in_order_and_the_next_flush_waits_for_that(store):
    durability, requests = make_durability(store)
    told = []
    publish(store, b"1")
    for number in range(7):
        durability.when_durable(lambda _, number=number: told.append(number))
    durability.begin_flush()
    store.flush()
    asked = requests.flushes
    assert durability.end_flush(None, 3)
    assert told == [0, 1, 2]
    publish(store, b"2")
    durability.when_durable(lambda _: told.append(9))
    durability.when_stored(0, lambda _: told.append(10))  # is safe, and comes in order all the same
    assert durability.tell_more(3)
    assert told == [*range(6)]
    assert requests.flushes == asked
    assert not durability.tell_more(3)
    assert told == [*range(7)]
    assert requests.flushes == asked + 1
    durability.begin_flush()
    store.flush()
    assert not durability.end_flush(None, 3)
    assert told == [*range(7), 9, 10]


def test_a_failure_is_told_to_all_at_once(store):
    durability, _ = make_durability(store)
    told = []
    publish(store, b"1")
    for _ in range(7):
        durability.when_durable(told.append)
    durability.begin_flush()
    error = FlushFailedError("EIO")
    assert not durability.end_flush(error, 3)
    assert told == [error] * 7
    assert not durability.tell_more(3)


def test_who_fails_when_told_keeps_nobody_else_waiting(store, caplog):
    caplog.set_level(logging.CRITICAL, "core.store.durability")
    durability, _ = make_durability(store)
    told = []
    for number in range(2):
        publish(store, b"1")
        durability.when_durable(lambda _: 1 // 0)
        durability.when_durable(lambda _, number=number: told.append(number))
        durability.begin_flush()
        store.flush()
        durability.end_flush(None)
    assert told == [0, 1]


def test_with_nothing_to_sync_durable_is_now(store):
    durability, requests = make_durability(store)
    publish(store, b"1")
    store.flush()
    told = []
    durability.when_durable(lambda _: told.append(1))
    assert (told, requests.flushes) == ([1], 0)


def test_async_durability_is_at_once(store):
    durability, requests = make_durability(store, is_sync=False)
    publish(store, b"1")
    told = []
    durability.when_durable(lambda _: told.append(1))
    durability.when_stored(store.written_until, lambda _: told.append(2))
    assert (told, requests.flushes) == ([1, 2], 0)


def test_a_publisher_waits_for_the_log_and_not_for_what_consumers_acknowledged(store):
    durability, _ = make_durability(store)
    flush(store, durability)
    journal = store.journal("acknowledged")
    told = []
    journal.append(b"1")
    durability.when_stored(store.written_until, lambda _: told.append("nothing to wait for"))
    assert told == ["nothing to wait for"]
    publish(store, b"1")
    durability.when_stored(store.written_until, lambda _: told.append("stored"))
    assert not durability.begin_flush()
    store.begin_flush(is_all=False).run()
    store.end_flush()
    durability.end_flush(None)
    assert told[1:] == ["stored"]
    assert store.flushed_until == store.written_until
    assert journal.dirty


def test_a_publisher_waits_for_tables_that_changed_before(store):
    durability, _ = make_durability(store)
    flush(store, durability)
    publish(store, b"1")
    store.table("t").put(b"k", b"v")
    told = []
    durability.when_stored(store.written_until, lambda _: told.append(1))
    assert durability.begin_flush()
    store.begin_flush().run()
    store.end_flush()
    durability.end_flush(None)
    assert told == [1]
    assert not store.needs_commit()


def test_what_nobody_waits_for_is_flushed_when_everything_is(store):
    durability, requests = make_durability(store)
    journal = store.journal("acknowledged")
    flush(store, durability)
    flushes = requests.flushes
    durability.keep_all()
    assert requests.flushes == flushes
    journal.append(b"1")
    publish(store, b"1")
    durability.when_stored(store.written_until, lambda _: None)
    durability.keep_all()
    assert requests.flushes > flushes
    assert durability.begin_flush()
    store.begin_flush().run()
    store.end_flush()
    durability.end_flush(None)
    assert not journal.dirty


def test_who_waits_for_the_log_and_who_waits_for_more_are_told_in_their_order(store):
    durability, _ = make_durability(store)
    flush(store, durability)
    told = []
    publish(store, b"1")
    store.journal("acknowledged").append(b"1")
    durability.when_stored(store.written_until, lambda _: told.append(1))
    durability.when_durable(lambda _: told.append(2))
    durability.when_stored(store.written_until, lambda _: told.append(3))
    assert durability.begin_flush()  # a caller waits for more than the log
    publish(store, b"2")
    durability.when_stored(store.written_until, lambda _: told.append(4))
    store.begin_flush().run()
    store.end_flush()
    durability.end_flush(None)
    assert told == [1, 2, 3]
    assert not durability.begin_flush()
    store.begin_flush(is_all=False).run()
    store.end_flush()
    durability.end_flush(None)
    assert told == [1, 2, 3, 4]


def test_a_failed_sync_is_told_to_all_who_wait_and_ask_later(store):
    durability, _ = make_durability(store)
    publish(store, b"1")
    told = []
    durability.when_stored(store.written_until, told.append)
    durability.begin_flush()
    durability.when_durable(told.append)
    durability.end_flush(FlushFailedError("EIO"))
    durability.when_durable(told.append)
    durability.when_kept(told.append)
    assert [type(error) for error in told] == [FlushFailedError] * 2 + [StoreClosedError] * 2


def test_a_message_that_is_safe_is_told_so_though_others_are_written_after_it(store):
    durability, requests = make_durability(store)
    publish(store, b"1")
    until = store.written_until
    flush(store, durability)
    publish(store, b"2")
    told, flushes = [], requests.flushes
    durability.when_stored(until, told.append)
    assert (told, requests.flushes) == ([None], flushes)


@pytest.mark.parametrize("is_sync", [False, True])
def test_kept_means_after_the_sync_that_covers_the_tables(store, is_sync):
    durability, requests = make_durability(store, is_sync=is_sync)
    flush(store, durability)
    told = []
    flushes = requests.flushes
    durability.when_kept(lambda _: told.append(1))
    assert (told, requests.flushes) == ([1], flushes)
    store.table("t").put(b"k", b"v")
    durability.when_kept(lambda _: told.append(2))
    assert (told, requests.flushes) == ([1], flushes + 1)
    durability.when_durable(lambda _: told.append(3))
    assert told == ([1] if is_sync else [1, 3])  # a message's acknowledgement waits for no table
    flush(store, durability)
    assert sorted(told) == [1, 2, 3]


def test_at_the_end_all_who_wait_are_told_and_those_whom_they_ask_for(store):
    durability, _ = make_durability(store)
    told = []
    publish(store, b"1")
    durability.when_durable(told.append)
    durability.begin_flush()  # and nobody ends it
    publish(store, b"2")
    durability.when_durable(lambda _: (publish(store, b"3"), durability.when_durable(told.append)))
    durability.end()
    assert told == [None, None]
    assert not store.needs_flush()
    durability.end()


def refuse(_fd):
    raise OSError(errno.EIO, "refused")


def test_an_end_that_the_disk_refuses_is_told(store, monkeypatch):
    durability, _ = make_durability(store)
    told = []
    publish(store, b"1")
    durability.when_durable(told.append)
    with monkeypatch.context() as disk:
        disk.setattr(os, "fdatasync", refuse)
        durability.end()
    assert [type(error) for error in told] == [FlushFailedError]
    assert durability.is_failed


def declare(store, durability, told, *names):
    for name in names:
        store.table("t").put(name, b"v")
        durability.when_kept(told.append)


def test_changes_of_tables_by_several_want_company_until_as_many_wait_again(store):
    durability, _ = make_durability(store)
    told = []
    declare(store, durability, told, b"1")
    assert not durability.wants_company()  # nobody was seen to come beside it
    first = store.begin_flush(is_all=durability.begin_flush())
    declare(store, durability, told, b"2", b"3")
    first.run()
    store.end_flush()
    durability.end_flush(None)
    assert durability.wants_company()  # one was told, two wait: three may come together
    declare(store, durability, told, b"4")
    assert not durability.wants_company()
    durability.begin_flush()
    store.flush()
    durability.end_flush(None)
    assert len(told) == 4
    assert not durability.wants_company()  # nothing has changed


def test_a_publisher_that_waits_for_the_log_alone_wants_no_company(store):
    durability, _ = make_durability(store)
    told = []
    declare(store, durability, told, b"1", b"2")
    flush(store, durability)
    assert len(told) == 2
    publish(store, b"1")
    durability.when_stored(store.written_until, lambda _: None)
    assert not durability.wants_company()


def test_one_that_changes_tables_by_itself_waits_for_others_once_and_no_more(store):
    durability, _ = make_durability(store)
    told = []
    declare(store, durability, told, b"1", b"2")
    flush(store, durability)
    declare(store, durability, told, b"3")
    assert durability.wants_company()
    flush(store, durability)
    declare(store, durability, told, b"4")
    assert not durability.wants_company()
