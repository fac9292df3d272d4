from __future__ import annotations

from gateway.auth.credentials import Identity, Refusal
from gateway.auth.login_log import log_login, log_refusal, outcome_of, reason_of, tell_penalty
from gateway.auth.permissions import ALL
from gateway.events import Actor, Events, Kind


def test_logins_and_refusals_bear_connection_and_name(caplog):
    caplog.set_level("INFO")
    events, told = Events(), []
    events.listen(told.append)
    log_login(Actor(events, "mqtt", 3, "192.0.2.7:5", "alice"), b"dev", b"alice", is_known=True)
    log_login(Actor(events, "mqtt", 4, "192.0.2.7:6"), b"dev", "bob", is_known=False)
    log_refusal(Actor(events, "mqtt", 5, "192.0.2.7:7"), "dev", b"x" * 1_000, "wrong user name or password")
    log_refusal(Actor(events, "mqtt", 6, "192.0.2.7:8"), "dev", "eve", "wrong user name or password", "no such user")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "logged in conn=3 peer=192.0.2.7:5 client=dev user=alice"),
        ("INFO", "let in without a login conn=4 peer=192.0.2.7:6 client=dev user=bob"),
        (
            "WARNING",
            f"login refused conn=5 peer=192.0.2.7:7 client=dev user={'x' * 128}... reason=wrong user name or password",
        ),
        ("WARNING", "login refused conn=6 peer=192.0.2.7:8 client=dev user=eve reason=no such user"),
    ]
    assert [(event.kind, event.actor.conn_id) for event in told] == [
        (Kind.LOGIN, 3),
        (Kind.LOGIN, 4),
        (Kind.LOGIN_REFUSED, 5),
        (Kind.LOGIN_REFUSED, 6),
    ]
    assert told[-1].fields["reason"] == "wrong user name or password"
    logins, _ = events.churn.find_logins(9)
    assert {(one.client, one.user[:5], one.outcome) for one, _ in logins} == {
        ("dev", "alice", "logged in"),
        ("dev", "bob", "let in without a login"),
        ("dev", "xxxxx", "wrong user name or password"),
        ("dev", "eve", "wrong user name or password"),
    }


def test_address_that_is_refused_is_told_with_how_long():
    events, told = Events(), []
    events.listen(told.append)
    tell_penalty(events, "192.0.2.7", 60)
    assert [(event.kind, event.actor.peer, event.fields) for event in told] == [
        (Kind.ADDRESS_REFUSED, "192.0.2.7", {"for_s": 60})
    ]


def test_an_outcome_is_a_word():
    answers = [Identity("ann", ALL), Identity("", ALL), Refusal.WRONG, Refusal.NAMELESS]
    assert [outcome_of(answer) for answer in answers] == ["known", "anonymous", "wrong", "nameless"]


def test_reason_of_a_certificate_that_is_nobodys_says_whose_name_it_has():
    assert reason_of(Refusal.STRANGER, "bob") == "the name in the certificate is none of the users: bob"
    assert reason_of(Refusal.STRANGER, "x" * 1_000).endswith(": " + "x" * 128 + "...")
    assert reason_of(Refusal.WRONG, "bob") == "wrong user name or password"
