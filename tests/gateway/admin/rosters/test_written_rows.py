from __future__ import annotations

from gateway.admin.rosters import written_rows
from gateway.admin.rosters.written_rows import WrittenRows


def test_a_row_is_written_anew_when_its_figures_change():
    rows = WrittenRows()
    assert rows.get("jobs", (0, None), lambda: b"none") == b"none"
    assert rows.get("jobs", (0, None), lambda: b"other") == b"none"
    assert rows.get("readings", (0, None), lambda: b"another row") == b"another row"
    assert rows.get("jobs", (1, None), lambda: b"one") == b"one"
    assert rows.get("jobs", (0, None), lambda: b"none again") == b"none again"
    rows.clear()
    assert len(rows) == 0


def test_of_very_many_rows_those_written_last_are_kept(monkeypatch):
    monkeypatch.setattr(written_rows, "ROWS_MAX", 2)
    rows = WrittenRows()
    for key in ("a", "b"):
        rows.get(key, 0, key.encode)
    rows.get("a", 1, lambda: b"a again")
    rows.get("c", 0, lambda: b"c")
    assert len(rows) == 2
    assert rows.get("a", 1, lambda: b"not written") == b"a again"
    assert rows.get("b", 0, lambda: b"b again") == b"b again"
