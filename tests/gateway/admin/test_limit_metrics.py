from __future__ import annotations

import contextlib
import itertools

import pytest

from core.room import Room
from gateway.admin.limit_metrics import (
    audit_families,
    backend_families,
    memory_families,
    penalty_families,
    remembered_families,
)
from gateway.audit.writer import Counts
from gateway.auth.backends.asked import AskedBackend
from gateway.auth.backends.question import BackendError, Question, Reply, Verdict
from gateway.auth.digest_memory import DigestMemory
from gateway.auth.penalty_box import PenaltyBox
from gateway.net.watermarks import Watermarks
from gateway.process.memory import MemoryWatch
from gateway.settings.penalties import PenaltySettings
from tests.support.backends import ScriptedBackend
from tests.support.logins import HandClock


def test_lines_of_the_audit_log_are_counted():
    counts = Counts()
    counts.written, counts.lost = 7, 2
    found = {family.name: family.samples[0].value for family in audit_families(counts)}
    assert found == {"lmq_audit_written": 7, "lmq_audit_lost": 2}


def test_logins_that_needed_no_check_are_counted_beside_those_that_did():
    memory = DigestMemory(1 << 16)
    memory.add(b"a")
    assert [memory.knows(digest) for digest in (b"a", b"b", b"a", b"a")] == [True, False, True, True]
    hits, misses = remembered_families({"passwords": memory})
    assert [(sample.labels, sample.value) for sample in hits.samples] == [({"by": "passwords"}, 3)]
    assert [(sample.labels, sample.value) for sample in misses.samples] == [({"by": "passwords"}, 1)]


def test_addresses_that_are_refused_are_counted():
    box = PenaltyBox(PenaltySettings(wrong_max=1))
    box.note_wrong(b"a", "192.0.2.7", 0)
    box.refuses(b"a", 0)
    found = {family.name: family.samples[0].value for family in penalty_families(box, 0)}
    assert found == {"lmq_addresses_refused": 1, "lmq_penalties": 1, "lmq_logins_refused": 1}


def test_memory_is_told_with_what_it_may_be():
    memory = MemoryWatch(Room(0), Watermarks(), 10, lambda: 7)
    memory.look(0)
    found = {family.name: family.samples[0].value for family in memory_families(memory)}
    assert found == {"lmq_memory_bytes": 7, "lmq_memory_bytes_max": 10}


@pytest.mark.asyncio
async def test_back_ends_are_told_with_what_they_were_asked():
    answers = [Reply(Verdict.YES), Reply(Verdict.NO), BackendError("away")]
    clock = HandClock(lambda: next(times))
    times = itertools.count(1_000, 250)

    async def answer(question):
        found = answers.pop(0)
        if isinstance(found, BackendError):
            raise found
        return found

    backend = AskedBackend(ScriptedBackend(answer), "auth.backends[0]", clock, b"key")
    for name in ("ann", "ann", "bob", "eve"):
        with contextlib.suppress(BackendError):
            await backend.ask(Question("mqtt", name, "x", "", ""))
    found = {
        (sample.name, sample.labels.get("outcome", "")): sample.value
        for family in backend_families([backend])
        for sample in family.samples
    }
    assert [found["lmq_backend_questions_total", said] for said in ("allow", "deny", "ignore", "failed")] == [
        1,
        1,
        0,
        1,
    ]
    assert found["lmq_backend_remembered_total", ""] == 1
    assert found["lmq_backend_seconds_total", ""] > 0
    assert found["lmq_backend_under_way", ""] == 0
