from __future__ import annotations

import random
from functools import partial

import pytest

from gateway.admin.rosters import searching
from gateway.admin.rosters.searching import Search, choose, choose_end, find_hits, keep_both
from gateway.line_sets import LINES, compile_line_set
from gateway.regex import compile_lines, compile_regex, split_looks

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


class Watched:
    """A set of lines that notes what is looked at."""

    def __init__(self, pattern, is_full_at=-1):
        self.looked = []
        self._set = compile_line_set(pattern)
        self._is_full_at = is_full_at

    def split(self, lines):
        return self._set.split(lines)

    def find(self, piece):
        self.looked.append(piece)
        return None if len(self.looked) == self._is_full_at else self._set.find(piece)


@pytest.mark.parametrize("pattern", ["b$", "[^b]", "^a.*b", "ab", "^$", ".b.", "$", "(?i)B|(xy)+", r"\bx*b"])
@pytest.mark.parametrize("dense", [1, 20, 1_000])
@pytest.mark.parametrize(("short", "at_once"), [(0, 1), (384, 2), (384, 64)])
async def test_names_that_many_expressions_are_found_in_are_found_as_by_asking_each(
    monkeypatch, pattern, dense, short, at_once
):
    monkeypatch.setattr(searching, "DENSE", dense)
    monkeypatch.setattr(searching, "SHORT", short)
    monkeypatch.setattr(searching, "SHORT_A_STEP", at_once)
    draw, watched = random.Random(pattern), Watched(pattern)
    some = ["ab", "b", "", "aéb", "xyb", "x" * searching.BYTES_A_STEP + "b"]
    names = [draw.choice(some[: draw.choice((2, 5, 5, 5, 6))]) for _ in range(400)]
    texts = ["\n".join(names[at : at + 20]) for at in range(0, len(names), 20)]
    matches = compile_regex(pattern).search
    for count in (400, 397):
        search = Search(matches, "", compile_lines(pattern), lambda: watched)
        hits = await find_hits(search, texts, 20, count)
        assert list(hits) == [matches(name) is not None for name in names[:count]]
    assert all(piece.count(b"\n") <= LINES and len(piece) <= searching.BYTES_A_STEP for piece in watched.looked)
    if pattern in {"b$", "$"}:
        assert bool(watched.looked) is (dense > 1 and pattern == "b$")  # not where all have it


@pytest.mark.parametrize(("is_full_at", "dear_s"), [(1, 9.0), (4, 9.0), (-1, -1.0)])
async def test_a_set_without_memory_or_with_too_many_states_is_not_asked_again(monkeypatch, is_full_at, dear_s):
    monkeypatch.setattr(searching, "DEAR_S", dear_s)
    names = [f"q{number}" for number in range(400)]
    texts = ["\n".join(names[at : at + 40]) for at in range(0, len(names), 40)]
    watched = Watched("[13579]$", is_full_at)
    search = Search(compile_regex("[13579]$").search, "", compile_lines("[13579]$"), lambda: watched)
    assert list(await find_hits(search, texts, 40, 400)) == [number % 2 for number in range(400)]
    assert len(watched.looked) == (is_full_at if is_full_at > 0 else 40 // LINES)


async def test_an_expression_is_compiled_for_some_lines_only_where_many_have_it():
    asked = []
    texts = ["\n".join(f"q{number}" for number in range(at, at + 40)) for at in range(0, 400, 40)]
    for pattern, is_asked in (("[13579]$", True), ("7$", True), ("^q17$", False), ("^q", False), ("(?i)^Q", True)):
        compile_set = partial(lambda text: asked.append(text) or compile_line_set(text), pattern)
        search = Search(compile_regex(pattern).search, "", compile_lines(pattern), compile_set)
        hits = await find_hits(search, texts, 40, 400)
        assert sum(hits) == {"[13579]$": 200, "7$": 40, "^q17$": 1, "^q": 400, "(?i)^Q": 400}[pattern]
        assert asked.count(pattern) == is_asked


async def test_marked_numbers_are_chosen_in_their_order(monkeypatch):
    monkeypatch.setattr(searching, "FLAGS_A_STEP", 2)
    marks = bytearray(b"\x01\x00\x01\x01\x00")
    assert list(await choose([4, 3, 0, 1, 2], marks, 2)) == [3, 0, 2]
    await keep_both(marks, bytearray(b"\x01\x01\x00\x01\x00"))
    assert marks == b"\x01\x00\x00\x01\x00"
    await keep_both(marks, bytearray(b"\x00\x01\x00\x01\x00"), is_wanted=False)
    assert marks == b"\x01\x00\x00\x00\x00"


@pytest.mark.parametrize("at_once", [1, 2, 5, 9])
async def test_only_so_many_marked_numbers_are_chosen_from_one_end_as_are_needed(at_once):
    numbers, marks = [4, 6, 3, 0, 1, 2, 5], bytearray(b"\x01\x00\x01\x01\x00\x01\x01")
    marked = [number for number in numbers if marks[number]]
    for need in range(8):
        first = list(await choose_end(numbers, marks, at_once, need, is_last=False))
        last = list(await choose_end(numbers, marks, at_once, need, is_last=True))
        assert first == marked[: len(first)]
        assert last == marked[len(marked) - len(last) :]
        assert min(len(first), len(last)) >= min(need, len(marked))
        assert max(len(first), len(last)) < need + at_once


@pytest.mark.parametrize("rest", ["", "b", "a.*b$", "^zz"])
@pytest.mark.parametrize("looks", ["(?=ab)", "(?!ab)", "(?!a|x)(?=.*b)", "(?=$)(?!a)"])
async def test_names_are_found_behind_what_they_must_or_must_not_begin_with(rest, looks):
    text = f"^{looks}{rest}"
    matches, (held, others) = compile_regex(text).search, split_looks(text)
    parts = [(Search(matches, "", compile_lines(look)), is_wanted) for look, is_wanted in others]
    search = Search(matches, "", compile_lines(held), None, text, parts)
    hits = await find_hits(search, ["\n".join(NAMES[:5]), "\n".join(NAMES[5:])], 5, 8)
    assert list(hits) == [matches(name) is not None for name in NAMES]


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
