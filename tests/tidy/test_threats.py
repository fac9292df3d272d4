"""Each threat that the page on security names has a test, and the test is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST = re.compile(r"`([^`]+\.py)`")


def test_each_threat_names_tests_that_are_there():
    page = (ROOT / "docs" / "security.md").read_text()
    section = page.partition("## Threats")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("|")][2:]
    assert len(rows) > 30
    for row in rows:
        named = [Path(name) for name in TEST.findall(row)]
        assert named, row
        folder = Path()
        for path in named:
            folder = path.parent if path.parent.parts else folder  # the same as of the one before, where none is said
            assert (ROOT / folder / path.name).is_file(), row
