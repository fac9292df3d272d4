"""What the documents say about the source is so."""

from __future__ import annotations

import re

import pytest

from gateway.settings.doc import settings_page
from gateway.settings.models import GatewaySettings, walk_settings
from gateway.version import VERSION
from tests.support.sources import PACKAGES, ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PRESENT = [path for path in DOCUMENTS if path.parent.name != "decisions" and path.name != "CHANGELOG.md"]  # not history
LINE_MAX = 120  # characters, as of the source: a longer line hides how long its sentence is
_PLACE = re.compile(r"`((?:core|gateway|lmq|spark_analytics|tests|deploy)/[\w./-]+)`")
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
_ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)


def anchors_of(page: str) -> set[str]:
    """Return what links to the headings of a Markdown page say behind `#`."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)  # a `#` there begins a comment
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(prose)}


def test_settings_page_is_what_the_models_say():
    assert (ROOT / "docs/settings.md").read_text() == settings_page(), "make it anew: lmq config doc > docs/settings.md"


def test_every_setting_says_what_it_means():
    rows = [line for line in settings_page().splitlines() if line.startswith("| `")]
    for name, _ in walk_settings(GatewaySettings):
        (row,) = [row for row in rows if row.startswith(f"| `{name}` |")]
        assert not row.endswith("|  |"), f"{name} has no comment beside it"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path):
    missing = [link for link in _LINK.findall(path.read_text()) if not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_headings_lead_somewhere(path):
    links = [(path.parent / page if page else path, anchor) for page, anchor in _ANCHOR.findall(path.read_text())]
    assert [(str(page), anchor) for page, anchor in links if anchor not in anchors_of(page.read_text())] == []


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_is_wrapped(path):
    prose = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > LINE_MAX and " " in line.strip("- ")] == []


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_places_of_the_source_that_documents_name_are_there(path):
    named = [ROOT / place for place in _PLACE.findall(path.read_text())]
    assert [place for place in named if not place.exists() and not place.with_name(f"{place.name}.py").exists()] == []


def test_architecture_names_every_package():
    page = (ROOT / "docs/architecture.md").read_text()
    packages = [path.parent.relative_to(ROOT) for name in PACKAGES for path in ROOT.glob(f"{name}/**/__init__.py")]
    assert [str(one) for one in packages if f"`{one}/`" not in page and f"`{one.name}/`" not in page] == []


def test_make_targets_of_the_documents_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for path in DOCUMENTS:
        if path.parent.name == "decisions":  # a record is not changed when a later one replaces it
            continue
        named = set(re.findall(r"`make ([a-z-]+)", path.read_text()))
        assert named <= targets, path


def test_version_is_in_the_changelog():
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_images_are_made_of_every_package():
    copied = re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    sent = re.findall(r"^!(\w+)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert set(PACKAGES) <= set(copied)
    assert set(PACKAGES) <= set(sent)
