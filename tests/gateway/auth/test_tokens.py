from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from gateway.auth.tokens import (
    MOMENT_MAX_S,
    NEVER_MS,
    TOKEN_BYTES_MAX,
    Token,
    TokenError,
    is_token,
    make_token,
    read_claims,
)
from gateway.settings.jwt import JwtSettings
from tests.support.tokens import make, part

NOW_MS = 1_000_000
MARK = b"m"


def _make(claims, **settings):
    said = JwtSettings(**{"groups_claim": "groups", "tags_claim": "tags", **settings})
    return make_token(claims, said, MARK, NOW_MS)


def test_password_that_has_the_shape_of_a_token_is_one():
    assert is_token(make({"sub": "ann"}))
    assert is_token(part({"alg": "none"}) + b"." + part({"sub": "ann"}) + b".")
    assert is_token(part({"alg": "HS256"}) + b"." + b"a" * TOKEN_BYTES_MAX + b".a")
    assert is_token(b"a" * TOKEN_BYTES_MAX + b".b.c")  # too long to be looked into


@pytest.mark.parametrize(
    "password",
    [
        b"",
        b"secret",
        b"a.b.c",
        b"..",
        b"1.2.3",
        part({"typ": "JWT"}) + b".e30.a",
        part({"alg": 7}) + b".e30.a",
        part([]) + b".e30.a",
        part({"alg": "HS256"}) + b".e30",
        part({"alg": "HS256"}) + b".e30.a.a",
        part({"alg": "HS256"}) + b".e30.a ",
        part(b"[" * 5_000) + b".e30.a",
        part(b"\xff") + b".e30.a",
    ],
)
def test_other_passwords_are_none(password):
    assert not is_token(password)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_password_or_a_token_and_no_fault(raw):
    is_token(raw)
    with contextlib.suppress(TokenError):
        assert isinstance(read_claims(b"e30." + part(raw) + b"."), dict)


def test_claims_say_the_user_the_groups_the_tags_and_the_end():
    claims = {"sub": "ann", "exp": 2_000, "groups": ["a", "b"], "tags": "administrator other", "more": {"x": 1}}
    assert _make(claims) == Token("ann", ("a", "b"), ("administrator",), 2_000_000, MARK)
    assert _make({"sub": "ann", "exp": 2_000.25, "groups": "a b", "tags": []}) == Token(
        "ann", ("a", "b"), (), 2_001_000, MARK
    )
    assert _make({"sub": "x", "name": "ann", "exp": 2_000}, user_claim="name").user == "ann"
    said = {"sub": "ann", "exp": 2_000, "groups": ["a"], "tags": ["administrator"]}
    assert _make(said, groups_claim="", tags_claim="") == Token("ann", (), (), 2_000_000, MARK)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({}, "user claim"),
        ({"sub": ""}, "user claim"),
        ({"sub": 7}, "user claim"),
        ({"sub": ["ann"]}, "user claim"),
        ({"sub": "a" * 256}, "user claim"),
        ({"sub": "a\x01b"}, "user claim"),
        ({"sub": "a\nb"}, "user claim"),
        ({"sub": "\ud800"}, "user claim"),
        ({"exp": None}, "no moment in exp"),
        ({"exp": "2000"}, "no moment in exp"),
        ({"exp": True}, "no moment in exp"),
        ({"exp": -1}, "no moment in exp"),
        ({"exp": float("inf")}, "no moment in exp"),
        ({"exp": float("nan")}, "no moment in exp"),
        ({"exp": 10**400}, "no moment in exp"),
        ({"exp": MOMENT_MAX_S}, "no moment in exp"),
        ({"exp": [2_000]}, "no moment in exp"),
        ({"nbf": "0"}, "no moment in nbf"),
        ({"exp": 1_000}, "expired"),
        ({"nbf": 1_001}, "not valid yet"),
        ({"groups": 7}, "groups"),
        ({"groups": None}, "groups"),
        ({"groups": [7]}, "groups"),
        ({"groups": [""]}, "groups"),
        ({"groups": ["\ud800"]}, "groups"),
        ({"groups": {"a": 1}}, "groups"),
        ({"tags": [["administrator"]]}, "tags"),
    ],
)
def test_claims_that_are_wrong_are_refused(claims, why):
    said = {"sub": "ann", "exp": 2_000, **claims} if claims else {"exp": 2_000}
    with pytest.raises(TokenError, match=why):
        _make(said)


def test_moments_are_taken_as_far_apart_as_the_clocks_may_be():
    assert _make({"sub": "ann", "exp": 1_001, "nbf": 1_000}).ends_at_ms == 1_001_000
    assert _make({"sub": "ann", "exp": 991, "nbf": 1_010}, leeway_s=10).ends_at_ms == 1_001_000
    for claims in ({"sub": "ann", "exp": 990}, {"sub": "ann", "exp": 2_000, "nbf": 1_011}):
        with pytest.raises(TokenError):
            _make(claims, leeway_s=10)


def test_token_without_an_end_is_taken_only_where_the_settings_say_so():
    with pytest.raises(TokenError, match="no end"):
        _make({"sub": "ann"})
    assert _make({"sub": "ann"}, endless=True).ends_at_ms == NEVER_MS
    with pytest.raises(TokenError, match="expired"):
        _make({"sub": "ann", "exp": 1}, endless=True)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers())


@given(st.dictionaries(st.sampled_from(["sub", "exp", "nbf", "groups", "tags"]), VALUES))
def test_any_claims_make_a_token_or_are_refused(claims):
    with contextlib.suppress(TokenError):
        assert 0 < len(_make(claims).user.encode()) <= 255
