from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.filters.sql_tokens import TEXT_CHARS_MAX, TOKENS_MAX, Kind, SqlError, split_words


def values(text: str) -> list[object]:
    return [token.value for token in split_words(text)[:-1]]


def test_words_of_each_kind_are_told_apart():
    assert values("a In ('it''s', '') /* no -- * / */ and -5L<=.5 OR $x_1<>1.e3 -- the rest\nIS") == [
        "a", "IN", "(", "it's", ",", "", ")", "AND", "-", 5, "<=", 0.5, "OR", "$x_1", "<>", 1000.0, "IS",
    ]  # fmt: skip
    assert [token.kind for token in split_words("Not nothing")] == [Kind.KEYWORD, Kind.NAME, Kind.END]
    assert split_words("  x")[0].at == 2


@pytest.mark.parametrize("text", ["a!=1", "'open", "/* open", '"a"', "a.b", "é", "\0", "9223372036854775808", "1e999"])
def test_what_is_no_word_is_refused(text):
    with pytest.raises(SqlError):
        split_words(text)


def test_size_is_bounded():
    split_words("a" * TEXT_CHARS_MAX)
    for text in ("a" * (TEXT_CHARS_MAX + 1), "+ " * (TOKENS_MAX + 1), "1" * 5_000):
        with pytest.raises(SqlError):
            split_words(text)


@given(st.text(max_size=60))
def test_any_text_is_words_or_refused(text):
    with contextlib.suppress(SqlError):
        tokens = split_words(text)
        assert [token.at for token in tokens] == sorted({token.at for token in tokens})
