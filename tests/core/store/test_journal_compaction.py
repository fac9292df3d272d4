"""A journal is written anew: what is kept through kills, power cuts, full disks and plans that failed."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from core.errors import DiskFullError
from core.store.journal import Journal
from core.store.sync_plan import SyncPlan, sync_now
from tests.support.crashes import crash_everywhere
from tests.support.files import file_size_limit, fresh_folder
from tests.support.journals import compact, read, write
from tests.support.simulated_disk import LETTER, NAMES, PAGES, SOME, SimulatedDisk


def read_copy(folder) -> list[bytes]:
    """What a process finds that starts after a kill."""
    copy = fresh_folder(folder)
    for name in folder.glob("j*"):
        shutil.copy(name, copy / name.name)
    found = read(copy / "j")
    assert [name.name for name in copy.iterdir()] == ["j"]
    return found


def test_compaction_replaces_all_records(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    for number in range(1_000):
        journal.append(b"%d" % number)
    compact(journal, [record for record in journal.replay() if record.endswith(b"00")])
    journal.append(b"new")
    kept = [b"%d" % number for number in range(1_000) if b"%d" % number == b"0" or not number % 100]
    kept = [record for record in kept if record.endswith(b"00")]
    assert list(journal.replay()) == [*kept, b"new"]
    journal.close()
    assert read(path) == [*kept, b"new"]
    assert [name.name for name in tmp_path.iterdir()] == ["j"]


def test_a_kill_after_a_compaction_keeps_what_came_after_it(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append(b"old")
    sync_now(journal)
    compact(journal, [b"kept"])
    journal.append(b"after")
    assert list(journal.replay()) == [b"kept", b"after"]
    assert read_copy(tmp_path) == [b"old", b"after"]
    sync_now(journal)
    journal.append(b"later")
    assert read_copy(tmp_path) == [b"kept", b"after", b"later"]
    journal.close()


def test_what_is_appended_during_a_compaction_is_kept_whether_it_is_finished_or_not(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append(b"old")
    for is_finished in (False, True):
        journal.begin_compaction()
        assert journal.is_compacting
        journal.append_compacted(b"compacted", 9)
        journal.append(b"during")
        if is_finished:
            journal.finish_compaction()
            assert list(journal.replay()) == [b"compacted", b"during"]
        else:
            journal.drop_compaction()
            assert list(journal.replay()) == [b"old", b"during"]
        assert not journal.is_compacting
    journal.append(b"after")
    journal.close()
    assert read(path) == [b"compacted", b"during", b"after"]


def test_a_kill_during_a_compaction_leaves_the_journal_as_it_was(tmp_path):
    journal = Journal.open(tmp_path / "j")
    journal.append(b"old")
    journal.begin_compaction()
    journal.append_compacted(b"compacted", 9)
    journal.append(b"during")
    copy = fresh_folder(tmp_path)
    for name in tmp_path.glob("j*"):
        shutil.copy(name, copy / name.name)
    assert read(copy / "j") == [b"old", b"during"]
    assert [name.name for name in copy.iterdir()] == ["j"]
    journal.close()
    assert [name.name for name in tmp_path.glob("j*")] == ["j"]


def test_closing_during_a_compaction_drops_it(tmp_path):
    journal = Journal.open(tmp_path / "j")
    journal.append(b"old")
    journal.begin_compaction()
    journal.close()
    assert read(tmp_path / "j") == [b"old"]


@pytest.mark.parametrize("kept", [SOME, LETTER, NAMES, PAGES])
@pytest.mark.parametrize("seed", range(12))
def test_a_power_cut_around_compactions_leaves_all_that_was_synced(tmp_path, kept, seed):
    rng = random.Random(seed)
    (tmp_path / "live" / "journals").mkdir(parents=True)
    disk = SimulatedDisk(tmp_path / "live")
    with disk.watching():
        journal = Journal.open(tmp_path / "live" / "journals" / "j")
        journal.append_many(b"one.two.", 4)
        sync_now(journal)
        synced = list(journal.replay())
        for number in range(rng.randrange(1, 4)):
            compact(journal, [b"compacted-%d" % number] * 2)
            journal.append_many(b"more" * 3_000, 4)
            plan = SyncPlan()
            journal.begin_sync(plan)
            planned = list(journal.replay())
            done = rng.choice([iter(plan.fds), iter(()), None])
            if done is None:
                plan.run()
                plan.end()
                synced = planned
            else:
                for fd in done:
                    os.fdatasync(fd)
                plan.fail()
            journal.append(b"after")
        disk.cut(rng, kept, tmp_path / "after")
        journal.close()
    path = tmp_path / "after" / "journals" / "j"
    assert read(path)[: len(synced)] == synced
    assert [name.name for name in path.parent.iterdir()] == ["j"]


def test_a_sync_that_was_under_way_is_of_the_compaction_before(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append(b"first")
    compact(journal, [b"second"])
    plan = SyncPlan()
    journal.begin_sync(plan)
    compact(journal, [b"third"])
    journal.append(b"after")
    plan.run()
    assert read_copy(tmp_path) == [b"second", b"after"]
    plan.end()
    journal.append(b"later")
    assert read_copy(tmp_path) == [b"second", b"after", b"later"]
    assert list(journal.replay()) == [b"third", b"after", b"later"]
    sync_now(journal)
    assert read_copy(tmp_path) == [b"third", b"after", b"later"]
    journal.close()
    assert [name.name for name in tmp_path.glob("j*")] == ["j"]


def test_a_plan_that_failed_is_made_good_by_the_next(tmp_path):
    journal = Journal.open(tmp_path / "j")
    compact(journal, [b"second"])
    plan = SyncPlan()
    journal.begin_sync(plan)
    plan.run()
    plan.fail()
    compact(journal, [b"third"])
    sync_now(journal)
    assert read_copy(tmp_path) == [b"third"]
    journal.close()
    assert [name.name for name in tmp_path.glob("j*")] == ["j"]


def test_a_full_disk_between_a_compaction_and_its_sync_appends_nothing(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append_many(bytes(64 * 900), 64)
    compact(journal, [b"kept"] * 6_000)
    size = path.stat().st_size
    with file_size_limit(size), pytest.raises(DiskFullError):
        journal.append_many(b"\x01" * 64 * 600, 64)
    assert list(journal.replay()) == [b"kept"] * 6_000
    assert read_copy(tmp_path) == [bytes(64)] * 900
    journal.close()
    assert read(path) == [b"kept"] * 6_000


def test_a_disk_that_fills_up_during_a_compaction_ends_it(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append_many(bytes(64 * 900), 64)
    journal.append_many(bytes(64 * 850), 64)
    journal.begin_compaction()
    journal.append_compacted(bytes(64 * 900), 64)
    with file_size_limit(journal._next.file.size):
        journal.append_many(b"\x01" * 64 * 100, 64)  # there is room in the journal, and none in the next one
        assert not journal.is_compacting
    journal.begin_compaction()
    with file_size_limit(journal._next.file.size), pytest.raises(DiskFullError):
        journal.append_compacted(bytes(64 * 1_000), 64)
    assert not journal.is_compacting
    assert [name.name for name in tmp_path.iterdir()] == ["j"]
    journal.close()
    assert len(read(path)) == 1_850


def test_a_full_disk_while_compacting_changes_nothing(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append(b"kept")
    with file_size_limit(1_000), pytest.raises(DiskFullError):
        compact(journal, [b"new"])
    journal.append(b"more")
    assert [name.name for name in tmp_path.iterdir()] == ["j"]
    journal.close()
    assert read(path) == [b"kept", b"more"]


def test_a_crash_at_any_step_of_a_compaction_keeps_every_record(tmp_path):
    folder = tmp_path / "journals"
    folder.mkdir()
    path = folder / "j"
    write(path, [b"old-1", b"old-2"])

    def work():
        journal = Journal.open(path)
        journal.append(b"old-3")
        compact(journal, [b"all three"])
        sync_now(journal)
        journal.append(b"four")
        journal.begin_compaction()
        journal.append_compacted(b"all four", 8)
        journal.append(b"five")
        journal.finish_compaction()
        sync_now(journal)
        journal.append_many(b"six." * 20_000, 4)
        journal.close()

    stages = [
        [b"old-1", b"old-2"],
        [b"old-1", b"old-2", b"old-3"],
        [b"all three"],
        [b"all three", b"four"],
        [b"all three", b"four", b"five"],
        [b"all four", b"five"],
        [b"all four", b"five"] + [b"six."] * 20_000,
    ]
    seen = []
    for _ in crash_everywhere(folder, work):
        seen.append(stages.index(read(path)))
        assert [name.name for name in folder.iterdir()] == ["j"]
    assert seen == sorted(seen)
    assert {0, 1, 3, 5, 6} <= set(seen)
