from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from gateway import line_sets
from gateway.line_sets import LINES, LineSet, compile_line_set
from gateway.regex import compile_lines, compile_regex

PIECES = (
    *("a", "q", "9", ".", "^", "$", "*", "+", "?", "|", "(", ")", "é", "-", ".*", "^.*", ".*$", "(a|q9)", "(|a)"),
    *("\\.", "\\\\", "\\*", "\\b", "\\B", "\\s", "\\S", "\\W", "\\d", "\\w", "\\_", "\\n", "[^a]", "[a-q9]", "[", "]"),
    *("{2}", "(?i)", "(?s)", "(?:"),
)
NAMES = ["", "amq.gen-1", "amq", "ordérs", "a\\b", "a b", " x", "99", "a9", "AMQ", "q*", "a٣", "a\vq", "q..9", "aqa9-"]
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def find_all(line_set, names):
    found = []
    for at, piece in enumerate(line_set.split("\n".join(names).encode())):
        found += [at * LINES + line for line in sorted(line_set.find(piece)) if line < piece.count(b"\n")]
    return found


@given(PATTERNS, st.lists(st.sampled_from(NAMES), min_size=1, max_size=20))
def test_an_expression_is_found_in_some_lines_as_in_each_by_itself(pattern, names):
    try:
        each = compile_regex(pattern)
    except ValueError:
        return
    if compile_lines(pattern) is None:  # it asks for more than a line has
        return
    found = find_all(compile_line_set(pattern), names)
    assert found == [number for number, name in enumerate(names) if each.search(name) is not None]


@pytest.mark.parametrize("count", [1, LINES - 1, LINES, LINES + 1, 5 * LINES])
@pytest.mark.parametrize("pattern", ["[13579]$", "^$", "^q", r"(?i)Q\d+", "", "[^q]", "(a+)+$|1|(?s).q"])
def test_lines_are_split_into_pieces_that_lose_none(pattern, count):
    draw = random.Random(count)
    names = [draw.choice(["", f"q{draw.randrange(100)}", "x", "aaaa"]) for _ in range(count)]
    line_set, each = compile_line_set(pattern), compile_regex(pattern)
    assert b"".join(line_set.split("\n".join(names).encode())) == "".join(f"{name}\n" for name in names).encode()
    assert find_all(line_set, names) == [at for at, name in enumerate(names) if each.search(name) is not None]


def test_an_expression_of_very_many_steps_is_not_looked_for_in_some_lines_at_once():
    assert compile_line_set("a" * line_sets.PROGRAM_MAX) is None
    assert compile_line_set(r"(\d{20}){5}") is not None


def test_one_that_takes_too_much_memory_is_not_compiled_or_tells_so(monkeypatch):
    class Full:
        def Match(self, piece):  # noqa: N802 - RE2's name
            return None  # as of a set that has no memory for its states

    assert LineSet(Full()).find(b"7\n") is None
    monkeypatch.setattr(line_sets, "_SET_BYTES_MAX", 2_000)
    assert compile_line_set("[13579]$") is None
