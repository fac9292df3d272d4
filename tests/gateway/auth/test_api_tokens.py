from __future__ import annotations

import pytest

from gateway.auth.api_tokens import PREFIX, TOKENS_MAX, ApiTokens, TooManyTokensError, is_api_token
from tests.support.stores import Rows


@pytest.fixture
def rows():
    return Rows()


@pytest.fixture
def tokens(rows):
    return ApiTokens(rows)


def _add(tokens, name="ci", user="ann", ends_at_ms=0):
    return tokens.add(name, user, ("read",), ends_at_ms=ends_at_ms, now_ms=1_000)


def test_token_lets_its_user_in_until_its_end_also_after_a_start(tokens, rows):
    text = _add(tokens, ends_at_ms=5_000)
    assert is_api_token(text)
    for again in (tokens, ApiTokens(rows)):
        found = again.check(text, 4_999)
        assert (found.name, found.user, found.scopes) == ("ci", "ann", ("read",))
        assert again.check(text, 5_000) is None
        assert again.used_at_ms == {"ci": 4_999}


def test_text_is_not_kept(tokens, rows):
    text = _add(tokens)
    secret = text.rpartition("_")[2].encode()
    assert len(text) > 50
    assert all(secret not in key + value for key, value in rows.items())


@pytest.mark.parametrize("wrong", ["", "lmq_", "lmq__", "x", "lmq_00_", "lmq_\u00e9_\u00e9"])
def test_text_that_is_none_lets_nobody_in(tokens, wrong):
    text = _add(tokens)
    assert tokens.check(wrong, 0) is None
    assert tokens.check(text[:-1], 0) is None
    assert tokens.check(text + "x", 0) is None
    assert tokens.check(text.partition("_")[0] + "_" + text.split("_")[1] + "_", 0) is None


def test_revoked_token_and_those_of_a_deleted_user_are_gone(tokens, rows):
    first, second, third = _add(tokens, "a"), _add(tokens, "b"), _add(tokens, "c", user="bob")
    assert tokens.revoke("a")
    assert not tokens.revoke("a")
    assert tokens.check(first, 0) is None
    assert tokens.check(second, 0) is not None
    tokens.revoke_of("ann")
    assert tokens.check(second, 0) is None
    assert tokens.check(third, 0).user == "bob"
    assert [token.name for token in ApiTokens(rows)] == ["c"]


def test_there_are_not_more_than_may_be(tokens):
    for number in range(TOKENS_MAX):
        _add(tokens, str(number))
    with pytest.raises(TooManyTokensError):
        _add(tokens, "more")


def test_tokens_begin_so_that_they_can_be_found():
    assert PREFIX == "lmq_"
