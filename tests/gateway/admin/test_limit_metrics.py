from __future__ import annotations

from gateway.admin.limit_metrics import audit_families
from gateway.audit.writer import Counts


def test_lines_of_the_audit_log_are_counted():
    counts = Counts()
    counts.written, counts.lost = 7, 2
    found = {family.name: family.samples[0].value for family in audit_families(counts)}
    assert found == {"lmq_audit_written": 7, "lmq_audit_lost": 2}
