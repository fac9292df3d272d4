from __future__ import annotations

from core.room import Room
from gateway.admin.limit_metrics import audit_families, memory_families, penalty_families
from gateway.audit.writer import Counts
from gateway.auth.penalty_box import PenaltyBox
from gateway.memory import MemoryWatch
from gateway.net.watermarks import Watermarks
from gateway.penalty_settings import PenaltySettings


def test_lines_of_the_audit_log_are_counted():
    counts = Counts()
    counts.written, counts.lost = 7, 2
    found = {family.name: family.samples[0].value for family in audit_families(counts)}
    assert found == {"lmq_audit_written": 7, "lmq_audit_lost": 2}


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
