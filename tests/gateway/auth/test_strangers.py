from __future__ import annotations

import pytest

from gateway.auth.credentials import Refusal
from gateway.auth.rule_book import Account
from gateway.auth.strangers import Strangers
from gateway.auth.users import User, hash_for_scram
from tests.support.logins import quick_hash
from tests.support.stores import MemoryTable


def _users(*kept):
    return {f"u{number}": User(f"u{number}", Account(), one) for number, one in enumerate(kept)}


def test_name_has_one_decoy_which_is_like_that_of_some_user_and_fits_no_password():
    strangers = Strangers(_users(quick_hash("secret"), hash_for_scram("secret", 4_096)))
    made = [strangers.make(f"stranger {number}") for number in range(40)]
    assert {user.kept.split("$")[0] for user in made} == {"scrypt", "scram-sha-256"}
    assert strangers.make("stranger 7").kept == made[7].kept
    assert not any(user.check(b"secret") for user in made[:3])


def test_decoys_are_like_the_users_that_there_are_now():
    strangers = Strangers({})
    assert strangers.make("x").kept.startswith("scrypt$16384$8$1$")
    strangers.follow(_users(quick_hash("secret")))
    assert strangers.make("x").kept.startswith("scrypt$2$1$1$")
    strangers.follow({})
    assert strangers.make("x").kept.startswith("scrypt$2$1$1$")


def test_decoys_follow_users_one_by_one():
    known = _users(quick_hash("secret"), hash_for_scram("secret", 4_096), "", hash_for_scram("secret", 8_192))
    users = {}
    strangers = Strangers(users)

    def note(name, after):
        before = users.pop(name, None)
        if after is not None:
            users[name] = after
        strangers.note(name, before, after)

    def kinds():
        return {strangers.make(f"stranger {number}").kept.split("$")[0] for number in range(60)}

    def rounds():
        return {strangers.find_verifier(users, f"stranger {number}").rounds for number in range(60)}

    usual, hashes = rounds(), {"scrypt", "scram-sha-256"}
    for name, expected, asked in (
        ("u0", {"scrypt"}, usual),
        ("u1", hashes, {4_096}),
        ("u2", hashes, {4_096}),
        ("u3", hashes, {4_096, 8_192}),
    ):
        note(name, known[name])
        assert (kinds(), rounds(), strangers.had_users) == (expected, asked, True)
        assert strangers.have_scram is (name in {"u1", "u2", "u3"})
    for name, expected, asked in (
        ("u1", hashes, {8_192}),
        ("u0", {"scram-sha-256"}, {8_192}),
        ("u3", {"scram-sha-256"}, usual),
        ("u2", {"scram-sha-256"}, usual),
    ):
        note(name, None)
        assert (kinds(), rounds()) == (expected, asked)
    assert not strangers.have_scram
    note("u0", known["u1"])
    note("u0", known["u0"])
    assert (kinds(), rounds()) == ({"scrypt"}, usual)


def test_what_an_unknown_name_is_asked_for_is_the_same_after_a_restart():
    table = MemoryTable()
    first, second, other = (Strangers({}) for _ in range(3))
    first.keep_secret(table)
    second.keep_secret(table)

    def asked(strangers, name):
        verifier = strangers.find_verifier({}, name)
        return verifier.rounds, verifier.salt

    assert asked(first, "x") == asked(second, "x")
    assert asked(first, "x") != asked(other, "x")
    assert asked(first, "x") != asked(first, "y")


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("u0", "wrong password or secret"),
        (b"u0", "wrong password or secret"),
        ("u1", "the user is disabled"),
        ("eve", "no such user in the settings or the data folder"),
        (b"\xff", "no such user in the settings or the data folder"),
        ("", Refusal.WRONG.value),
    ],
)
def test_log_says_which_of_the_two_was_wrong(name, logged):
    users = _users(quick_hash("secret"), quick_hash("secret"))
    users["u1"] = users["u1"].shut_out()
    strangers = Strangers(users)
    assert strangers.explain(Refusal.WRONG.value, name) == logged
    assert strangers.explain(Refusal.BUSY.value, name) == Refusal.BUSY.value
    assert strangers.explain(Refusal.WRONG.value, name, "the token is refused: so") == "the token is refused: so"
    assert strangers.explain(Refusal.BUSY.value, name, "the token is refused: so") == Refusal.BUSY.value
    strangers.follow({})
    assert strangers.explain(Refusal.WRONG.value, "u0") == "no such user in the settings or the data folder"
