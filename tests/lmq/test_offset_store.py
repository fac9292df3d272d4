from __future__ import annotations

import asyncio
import os

import pytest

from lmq import ConnectFailedError, SdkError
from lmq.offset_store import BrokerOffsets, FileOffsets
from lmq.queues import MessageQueue

pytestmark = pytest.mark.asyncio
A, B = MessageQueue("T", "a", 0), MessageQueue("%LMQ%x", "b", 0)


class Brokers:
    """Two brokers' offsets; one that is away refuses."""

    def __init__(self) -> None:
        self.offsets = {}
        self.away = set()
        self.commits = 0

    async def committed(self, queue):
        return self.offsets.get(queue)

    async def commit(self, queue, offset):
        if queue.broker_name in self.away:
            raise ConnectFailedError(queue.broker_name, "away")
        self.offsets[queue] = offset
        self.commits += 1


async def test_what_was_noted_is_committed_once():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    store.note(A, 5)
    assert await store.load(A) is None
    await store.save()
    store.note(A, 5)
    await store.save()
    assert (await store.load(A), brokers.commits) == (5, 1)


async def test_what_a_broker_did_not_take_is_tried_again_and_others_are_not_held_up():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    brokers.away.add("a")
    store.note(A, 5)
    store.note(B, 6)
    with pytest.raises(ConnectFailedError):
        await store.save()
    assert brokers.offsets == {B: 6}
    brokers.away.clear()
    await store.save()
    assert brokers.offsets == {A: 5, B: 6}


async def test_offsets_in_a_file_are_there_the_next_time(tmp_path):
    path = tmp_path / "client" / "group" / "offsets.json"
    store = FileOffsets(path)
    assert await store.load(A) is None
    store.note(A, 5)
    store.note(B, 6)
    await store.save()
    again = FileOffsets(path)
    assert (await again.load(A), await again.load(B)) == (5, 6)
    assert await again.load(MessageQueue("T", "a", 1)) is None


async def test_a_crash_in_a_write_leaves_the_offsets_as_they_were(tmp_path, monkeypatch):
    path = tmp_path / "offsets.json"
    store = FileOffsets(path)
    store.note(A, 5)
    await store.save()

    def crash(_file):
        raise OSError("no room")

    store.note(A, 6)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", crash)
        with pytest.raises(OSError, match="no room"):
            await store.save()
    assert await FileOffsets(path).load(A) == 5
    await store.save()
    assert await FileOffsets(path).load(A) == 6


async def test_an_unchanged_file_is_not_written_again(tmp_path):
    path = tmp_path / "offsets.json"
    store = FileOffsets(path)
    store.note(A, 5)
    await store.save()
    path.unlink()
    store.note(A, 5)
    await store.save()
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"offsets": [{}]}', '{"offsets": 5}', "\x00" * 40])
async def test_a_file_that_cannot_be_read_is_named(tmp_path, text):
    path = tmp_path / "offsets.json"
    path.write_text(text)
    with pytest.raises(SdkError, match=r"offsets\.json"):
        await FileOffsets(path).load(A)


async def test_an_older_offset_is_not_committed_behind_a_newer_one():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    reached, goes_on = asyncio.Event(), asyncio.Event()
    commit = brokers.commit

    async def commit_slowly(queue, offset):
        if offset == 1:
            reached.set()
            await goes_on.wait()
        await commit(queue, offset)

    brokers.commit = commit_slowly
    store.note(A, 1)
    store.note(B, 5)
    first = asyncio.create_task(store.save())
    await reached.wait()
    store.note(B, 9)
    second = asyncio.create_task(store.save())
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(first, second)
    assert brokers.offsets == {A: 1, B: 9}


async def test_what_a_save_did_not_come_to_before_it_was_cancelled_is_committed_by_the_next():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    commit, never = brokers.commit, asyncio.Event()
    brokers.commit = lambda _queue, _offset: never.wait()
    store.note(A, 5)
    store.note(B, 6)
    saving = asyncio.create_task(store.save())
    await asyncio.sleep(0)
    saving.cancel()
    await asyncio.gather(saving, return_exceptions=True)
    brokers.commit = commit
    await store.save()
    assert brokers.offsets == {A: 5, B: 6}


async def test_a_reset_to_what_was_saved_last_is_committed_behind_what_is_under_way():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    store.note(A, 5)
    await store.save()
    commit, reached, goes_on = brokers.commit, asyncio.Event(), asyncio.Event()

    async def commit_slowly(queue, offset):
        reached.set()
        await goes_on.wait()
        await commit(queue, offset)

    brokers.commit = commit_slowly
    store.note(A, 9)
    saving = asyncio.create_task(store.save())
    await reached.wait()
    store.note(A, 5)
    goes_on.set()
    await saving
    await store.save()
    assert brokers.offsets == {A: 5}


async def test_what_is_forgotten_is_not_committed_later():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    brokers.away.add("a")
    store.note(A, 5)
    store.note(B, 6)
    with pytest.raises(ConnectFailedError):
        await store.save()
    store.forget(A)
    brokers.away.clear()
    await store.save()
    assert brokers.offsets == {B: 6}
    store.note(A, 9)
    await store.save()
    assert brokers.offsets == {A: 9, B: 6}


async def test_what_is_forgotten_while_others_are_committed_is_left_out():
    brokers = Brokers()
    store = BrokerOffsets(brokers)
    commit = brokers.commit

    async def commit_and_forget(queue, offset):
        store.forget(A if queue == B else B)
        await commit(queue, offset)

    brokers.commit = commit_and_forget
    store.note(A, 5)
    store.note(B, 6)
    await store.save()
    assert brokers.offsets == {A: 5}


async def test_offsets_in_a_file_are_not_forgotten(tmp_path):
    store = FileOffsets(tmp_path / "offsets.json")
    store.note(A, 5)
    store.forget(A)
    assert await store.load(A) == 5
