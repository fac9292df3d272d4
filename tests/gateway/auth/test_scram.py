from __future__ import annotations

import base64

import pytest
from hypothesis import given, strategies as st

from gateway.auth.scram import METHOD, ScramError, ScramExchange, Verifier, derive_key, make_fake, prepare
from tests.support.scram import ScramClient

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def verifier(password=b"pencil", rounds=4_096):
    return Verifier(rounds, SALT, derive_key(password, SALT, rounds))


def exchange(password=b"pencil", nonce=None):
    kept = verifier(password)
    return ScramExchange(lambda _: kept, nonce)


def test_messages_are_those_of_the_standard():  # RFC 7677, section 3
    assert METHOD == "SCRAM-SHA-256"
    server = exchange(nonce=SERVER_NONCE)
    first = server.answer_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    server.take_final(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.check()
    assert server.final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.user == "user"


@pytest.mark.parametrize(("password", "is_right"), [("pencil", True), ("Pencil", False), ("", False)])
@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=user,"])
def test_proof_is_right_with_the_password_only(password, is_right, header):
    server, client = exchange(), ScramClient("user", password, header=header)
    server.take_final(client.final(server.answer_first(client.first)))
    assert server.check() is is_right
    assert client.is_server(server.final) is is_right


def test_proof_of_another_exchange_is_not_taken():
    client = ScramClient("user", "pencil")
    one, other = exchange(), exchange()
    said = client.final(one.answer_first(client.first))
    other.answer_first(client.first)
    with pytest.raises(ScramError):
        other.take_final(said)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n",
        b"\xff,,n=u,r=x",
        b"p=tls-unique,,n=u,r=x",
        b"n,,m=ext,n=u,r=x",
        b"n,,n=,r=x",
        b"n,,n=a=b,r=x",
        b"n,,n=u",
        b"n,,n=u,r=",
        b"n,,n=u,r=a b",
        b"n,a=other,n=u,r=x",
        b"n,,n=u,r=" + b"x" * 5_000,
    ],
)
def test_what_is_no_first_message_is_refused(first):
    with pytest.raises(ScramError):
        exchange().answer_first(first)


@pytest.mark.parametrize(
    "change",
    [
        lambda final: b"",
        lambda final: final.replace(b"c=biws", b"c=eSws"),
        lambda final: final.replace(b"c=biws", b"c=b"),
        lambda final: final.rpartition(b",p=")[0],
        lambda final: final[:-4] + b"====",
        lambda final: final.rpartition(b",p=")[0] + b",p=AAAA",
        lambda final: final.replace(b",r=", b",x="),
    ],
)
def test_what_is_no_final_message_is_refused(change):
    server, client = exchange(), ScramClient("user", "pencil")
    final = client.final(server.answer_first(client.first))
    with pytest.raises(ScramError):
        server.take_final(change(final))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_are_answered_or_refused(first, final):
    server = ScramExchange(lambda _: Verifier(4_096, SALT, bytes(64)))
    try:
        server.answer_first(b"n,,n=u,r=" + first)
        server.take_final(b"c=biws,r=" + final)
    except ScramError:
        return
    assert not server.check()


def test_names_may_hold_commas_and_equals_signs():
    server = exchange()
    server.answer_first(b"n,,n=a=2Cb=3Dc,r=x")
    assert server.user == "a,b=c"


@pytest.mark.parametrize(  # RFC 4013, section 3
    ("text", "same"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("a\u00a0b", "a b")],
)
def test_texts_that_count_as_the_same_are_the_same(text, same):
    assert prepare(text) == same
    assert derive_key(text.encode(), SALT, 1) == derive_key(same.encode(), SALT, 1)


@pytest.mark.parametrize("text", ["\u0007\u00e9", "\u06271"])
def test_texts_that_may_not_be_are_taken_as_they_are(text):
    assert prepare(text) == text


def test_stand_in_of_a_name_is_always_the_same_and_of_the_usual_cost():
    one, again, other = (make_fake(name, b"secret", [5_000, 9_000]) for name in ("a", "a", "b"))
    assert one[:2] == again[:2]
    assert one.salt != other.salt
    assert one.salt != make_fake("a", b"another", [5_000]).salt
    assert one.rounds in {5_000, 9_000}
    assert len(one.salt) == len(SALT)
