"""What no file of the repository may hold."""

from __future__ import annotations

import re

import pytest

from tests.support.sources import PRODUCT_SOURCES, ROOT, TEST_SOURCES

_MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:wor[k]|roo[t]|home/[a-z]+|User[s])/")
_SILENT_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)")
_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "*.toml", "*.yaml", "*.py", "Makefile", "Dockerfile", "docs/**/*.md", ".ci/*")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("path", PRODUCT_SOURCES + TEST_SOURCES + _DOCUMENTS)
def test_no_path_of_one_machine(path):
    assert not _MACHINE_PATH.findall((ROOT / path).read_text())


@pytest.mark.parametrize("path", PRODUCT_SOURCES + TEST_SOURCES + _DOCUMENTS)
def test_no_mark_of_a_merge_is_left(path):
    assert not _CONFLICT.findall((ROOT / path).read_text())


@pytest.mark.parametrize("path", PRODUCT_SOURCES)
def test_ignored_rules_are_named(path):
    assert not _SILENT_IGNORE.findall((ROOT / path).read_text())


@pytest.mark.parametrize("path", PRODUCT_SOURCES)
def test_no_import_is_for_the_type_checker_alone(path):
    assert "TYPE_CHECKING" not in (ROOT / path).read_text()
