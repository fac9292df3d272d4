from __future__ import annotations

import random

import pytest

from gateway.admin.rosters import searching
from gateway.admin.rosters.searching import Search, choose, find_hits, keep_both
from gateway.plain_regex import NAME_MAX, compile_plain
from gateway.regex import compile_lines, compile_regex

pytestmark = pytest.mark.asyncio
NAMES = ["Abab", "b", "", "xAB", "ba", "aB ab", "c", "ab"]


@pytest.mark.parametrize("word", ["ab", "b", "abab", "zz", "b\na", "\n", " ", ""])
@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("many", [0, 2, 128])
async def test_names_with_a_word_are_found_in_any_text_as_by_asking_each(monkeypatch, word, size, many):
    monkeypatch.setattr(searching, "MANY_HITS", many)
    texts = ["\n".join(NAMES[at : at + size]) for at in range(0, len(NAMES), size)]
    for count in (8, 7):  # the last one came when it was asked already
        for told in (word, ""):
            hits = await find_hits(Search(lambda name: word in name.lower(), told), texts, size, count)
            assert list(hits) == [word in name.lower() for name in NAMES[:count]]


@pytest.mark.parametrize("pattern", ["ab", "^ab$", "^$", ".*", "[^a]", "b$", "zz", "^x", "(?i)^a.*b$"])
@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("at_once", [0, 1, 4, 4_096])
async def test_names_are_found_by_an_expression_in_any_text_as_by_asking_each(monkeypatch, pattern, size, at_once):
    monkeypatch.setattr(searching, "HITS_A_STEP", 2)
    monkeypatch.setattr(searching, "BYTES_A_STEP", at_once)
    texts = ["\n".join(NAMES[at : at + size]) for at in range(0, len(NAMES), size)]
    matches = compile_regex(pattern).search
    for count in (8, 7):
        hits = await find_hits(Search(matches, "", compile_lines(pattern)), texts, size, count)
        assert list(hits) == [matches(name) is not None for name in NAMES[:count]]


@pytest.mark.parametrize("pattern", ["b$", "[^b]", "^a.*b", "ab", "^$", ".b.", "$"])
@pytest.mark.parametrize("dense", [1, 4, 1_000])
@pytest.mark.parametrize(("short", "at_once"), [(0, 1), (48, 2), (48, 64)])
async def test_names_that_many_expressions_are_found_in_are_found_as_by_asking_each(
    monkeypatch, pattern, dense, short, at_once
):
    monkeypatch.setattr(searching, "DENSE", dense)
    monkeypatch.setattr(searching, "SHORT", short)
    monkeypatch.setattr(searching, "SHORT_A_STEP", at_once)
    draw, looked = random.Random(pattern), []
    some = ["ab", "b", "", "aéb", "xyb", "x" * NAME_MAX + "b"]
    names = [draw.choice(some[: draw.choice((2, 5, 6))]) for _ in range(100)]
    texts = ["\n".join(names[at : at + 4]) for at in range(0, len(names), 4)]
    matches, plain = compile_regex(pattern).search, compile_plain(pattern)

    def look(name):
        looked.append(name)
        return plain(name)

    for count in (100, 97):
        hits = await find_hits(Search(matches, "", compile_lines(pattern), look), texts, 4, count)
        assert list(hits) == [matches(name) is not None for name in names[:count]]
    assert all(len(name) <= NAME_MAX for name in looked)
    if pattern in {"b$", "$"}:
        assert bool(looked) is (dense > 1 and pattern == "b$")  # where one of four is many, or any; not where all are


async def test_marked_numbers_are_chosen_in_their_order(monkeypatch):
    monkeypatch.setattr(searching, "FLAGS_A_STEP", 2)
    marks = bytearray(b"\x01\x00\x01\x01\x00")
    assert list(await choose([4, 3, 0, 1, 2], marks, 2)) == [3, 0, 2]
    await keep_both(marks, bytearray(b"\x01\x01\x00\x01\x00"))
    assert marks == b"\x01\x00\x00\x01\x00"


async def test_no_step_of_a_search_by_an_expression_looks_at_more_than_some_thousand_bytes():
    lengths = []

    class Watched:
        def are_all(self, lines):
            assert len(lines) <= searching.BYTES_A_STEP + 251
            return False

        def find(self, lines):
            lengths.append(len(lines))
            return iter(())

    text = "\n".join("x" * 250 for _ in range(1_024))
    await find_hits(Search(lambda _: None, "", Watched()), [text], 1_024, 1_024)
    assert sum(lengths) + len(lengths) == len(text) + 1
    assert max(lengths) <= searching.BYTES_A_STEP + 251
