"""What no file of the repository may hold."""

from __future__ import annotations

import re

from tests.support.sources import PRODUCT_SOURCES, ROOT, TEST_SOURCES

_MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:wor[k]|roo[t]|home/[a-z]+|User[s])/")
_SILENT_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)")
_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "*.toml", "*.yaml", "*.py", "Makefile", "Dockerfile", "docs/**/*.md", ".ci/*")
    for path in ROOT.glob(pattern)
)


def _find(pattern, paths):
    return [f"{path}: {found[0]}" for path in paths for found in pattern.finditer((ROOT / path).read_text())]


def test_no_path_of_one_machine():
    assert not _find(_MACHINE_PATH, PRODUCT_SOURCES + TEST_SOURCES + _DOCUMENTS)


def test_no_mark_of_a_merge_is_left():
    assert not _find(_CONFLICT, PRODUCT_SOURCES + TEST_SOURCES + _DOCUMENTS)


def test_ignored_rules_are_named():
    assert not _find(_SILENT_IGNORE, PRODUCT_SOURCES)


def test_no_import_is_for_the_type_checker_alone():
    assert not _find(re.compile("TYPE_CHECKING"), PRODUCT_SOURCES)
