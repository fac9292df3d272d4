from __future__ import annotations

import random

import pytest

from gateway.admin import kept_looks as module
from gateway.admin.kept_looks import KEEP_MS, KeptLooks
from gateway.admin.steps import Steps
from gateway.admin.trail import NOWHERE, Passed, Trail
from tests.support.stores import FullJournal, MemoryJournal

pytestmark = pytest.mark.asyncio
ONE, LONG, OTHER = (b"q", b"one"), (b"q" * 200, b"r" * 300), (b"q", b"x" * 2_000)


async def _start(journal):
    journal.reopen()
    trail = Trail()
    looks = KeptLooks(trail, journal)
    await looks.load(Steps())
    return trail, looks


async def test_looks_are_known_in_later_processes_with_who_was_there():
    journal = MemoryJournal()
    trail, looks = await _start(journal)
    for at_ms, place, by in ((KEEP_MS, 5, "a"), (2 * KEEP_MS, 7, "b" * 200)):
        for reader in (ONE, LONG, OTHER):
            trail.note(reader, at_ms, place, place, by)
        await looks.keep(at_ms, Steps())
    assert looks._kept.keys() == {ONE, LONG}  # nothing is kept of a reader that is not written down
    for _ in range(2):
        trail, looks = await _start(journal)
        for reader in (ONE, LONG):
            assert trail.find(reader, 5) == Passed(KEEP_MS, 2 * KEEP_MS, f"a; {'b' * 200}")
        assert trail.find(OTHER, 5) == NOWHERE


async def test_a_look_is_written_each_half_minute_and_of_what_moved_alone():
    journal = MemoryJournal()
    trail, looks = await _start(journal)
    for at_ms in range(KEEP_MS, 5 * KEEP_MS, KEEP_MS // 6):
        trail.note(ONE, at_ms, 5 if at_ms < 3 * KEEP_MS else 6, 5)
        await looks.keep(at_ms, Steps())
    assert sum(record[0] == module.LOOK for record in journal.records) == 2


async def test_a_full_disk_loses_looks_and_nothing_else():
    journal = FullJournal()
    trail, looks = await _start(journal)
    journal.is_full = True
    trail.note(ONE, KEEP_MS, 5, 5)
    await looks.keep(KEEP_MS, Steps())
    journal.is_full = False
    trail.note(ONE, 2 * KEEP_MS, 6, 6)
    await looks.keep(2 * KEEP_MS, Steps())
    trail, _ = await _start(journal)
    assert trail.find(ONE, 5).until_ms == 2 * KEEP_MS


@pytest.mark.parametrize("seed", range(10))
async def test_what_is_told_after_starts_and_compactions_is_true_of_what_was_looked_at(seed, monkeypatch):
    monkeypatch.setattr(module, "COMPACT_BYTES_MIN", 3_000)
    chance, journal = random.Random(seed), MemoryJournal()
    trail, looks = await _start(journal)
    readers = [(b"q%d" % number, b"r") for number in range(6)]
    places, history = dict.fromkeys(readers, 0), {reader: [] for reader in readers}
    for turn in range(1, 200):
        at_ms = turn * KEEP_MS
        if chance.random() < 0.05:
            trail, looks = await _start(journal)
        for reader in readers:
            places[reader] += chance.choice([0, 1, 3])
            history[reader].append((at_ms, places[reader]))
            trail.note(reader, at_ms, places[reader], places[reader], chance.choice(["", "a", "b", "c" * 90]))
        await looks.keep(at_ms, Steps())
    trail, _ = await _start(journal)
    assert journal.compactions
    for reader in readers:
        for offset in range(places[reader]):
            done_ms = next(at_ms for at_ms, place in history[reader] if place > offset)
            found = trail.find(reader, offset)
            assert found.from_ms < done_ms <= found.until_ms
