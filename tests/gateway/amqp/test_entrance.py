"""Logins that go in steps, and new secrets of clients that were let in."""

from __future__ import annotations

import json

import pytest
from pamqp.commands import Basic, Channel, Connection, Queue

from gateway.auth.user_rows import NameRow
from gateway.auth.users import hash_for_scram
from tests.support import amqp
from tests.support.amqp_door import CAPABILITIES, AmqpWorld
from tests.support.logins import quick_hash
from tests.support.scram import ScramClient
from tests.support.tokens import SECRET, make

USERS = {"alice": {"password_hash": hash_for_scram("secret", 4_096)}}
RULES = [{"permit": "allow", "groups": ["all"]}, {"permit": "allow", "users": ["ann"], "names": ["q"]}]
AUTH = {
    "users": USERS,
    "default": "deny",
    "rules": [*RULES, {"permit": "allow", "users": ["alice"]}],
    "jwt": {"algorithms": ["HS256"], "secret": SECRET, "groups_claim": "groups"},
}


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, auth=AUTH, make_engine=engine_maker)
    yield world
    world.close()


def token(world, seconds=60, **claims):
    return make({"sub": "ann", "exp": world.now_ms // 1_000 + seconds, **claims})


def bearer(token):
    return b"n,,\x01auth=Bearer " + token + b"\x01\x01"


def dial(world):
    peer = world.accept().write(amqp.PROTOCOL_HEADER)
    (start,) = peer.take()
    peer.mechanisms = start.mechanisms
    return peer


def say(peer, mechanism, response):
    return peer.send(
        Connection.StartOk({"capabilities": CAPABILITIES}, mechanism, response.decode(), "en_US"), channel=0
    )


def secure_ok(peer, response):
    return peer.send(Connection.SecureOk(response.decode()), channel=0)


def ask_for(peer):
    """Return what the client is asked for."""
    (secure,) = peer.take()
    assert isinstance(secure, Connection.Secure)
    return secure.challenge if isinstance(secure.challenge, bytes) else secure.challenge.encode()


def test_mechanisms_are_those_that_somebody_could_come_in_by(world, tmp_path, engine_maker):
    assert dial(world).mechanisms == "PLAIN AMQPLAIN SCRAM-SHA-256 OAUTHBEARER"
    plain = AmqpWorld(tmp_path / "plain", make_engine=engine_maker)
    assert dial(plain).mechanisms == "PLAIN AMQPLAIN"
    plain.close()


@pytest.mark.parametrize("is_first_asked", [False, True])
def test_client_comes_in_by_scram(world, is_first_asked):
    peer, client = dial(world), ScramClient()
    if is_first_asked:
        assert ask_for(say(peer, "SCRAM-SHA-256", b"")) == b""
        secure_ok(peer, client.first)
    else:
        say(peer, "SCRAM-SHA-256", client.first)
    final = ask_for(secure_ok(peer, client.final(ask_for(peer))))
    assert client.is_server(final)
    (tune,) = secure_ok(peer, b"").take()
    assert isinstance(tune, Connection.Tune)
    peer.send(Connection.TuneOk(10, 131_072, 0), Connection.Open("/"), channel=0)
    assert isinstance(peer.send(Channel.Open()).take()[-1], Channel.OpenOk)
    assert peer.handler.identity.user == "alice"


@pytest.mark.parametrize("client", [ScramClient(password="wrong"), ScramClient("nobody")])
def test_a_wrong_proof_is_refused(world, client, caplog):
    peer = say(dial(world), "SCRAM-SHA-256", client.first)
    (close,) = secure_ok(peer, client.final(ask_for(peer))).take()
    assert close.reply_code == 403
    assert "SCRAM-SHA-256" in close.reply_text
    assert world.amqp_counts.refused == {"login": 1}
    (said,) = caplog.messages
    which = "no such user in the settings or the data folder" if client.user == "nobody" else "wrong password or secret"
    assert said.endswith(f"user={client.user} reason={which}")


@pytest.mark.parametrize(("mechanism", "response"), [("SCRAM-SHA-256", b"rubbish"), ("OAUTHBEARER", b"rubbish")])
def test_rubbish_is_refused(world, mechanism, response):
    (close,) = say(dial(world), mechanism, response).take()
    assert close.reply_code == 403


def test_client_comes_in_by_a_token_in_oauthbearer(world):
    (tune,) = say(dial(world), "OAUTHBEARER", bearer(token(world))).take()
    assert isinstance(tune, Connection.Tune)


@pytest.mark.parametrize("answer", [b"\x01", b"", b"anything"])
def test_client_is_told_what_is_wrong_with_its_token_answers_and_is_refused(world, caplog, answer):  # RFC 7628, 3.2.2
    peer = say(dial(world), "OAUTHBEARER", bearer(token(world, -60)))
    assert json.loads(ask_for(peer)) == {"status": "invalid_token"}
    assert world.amqp_counts.refused == {}
    (close,) = secure_ok(peer, answer).take()
    assert close.reply_code == 403
    assert "OAUTHBEARER" in close.reply_text
    assert world.amqp_counts.refused == {"login": 1}
    assert world.amqp_counts.logins == {"wrong": 1}
    assert caplog.messages[-1].endswith("reason=the token is refused: it has expired (exp)")


def test_a_right_token_in_answer_to_the_complaint_comes_too_late(world):
    peer = say(dial(world), "OAUTHBEARER", bearer(token(world, -60)))
    ask_for(peer)
    (close,) = secure_ok(peer, bearer(token(world))).take()
    assert close.reply_code == 403


def test_nobody_says_more_than_was_asked_for(world):
    peer = dial(world)
    secure_ok(peer, b"x")
    assert peer.is_closed
    peer = say(dial(world), "SCRAM-SHA-256", ScramClient().first)
    ask_for(peer)
    peer.send(Connection.TuneOk(10, 131_072, 0), channel=0)
    assert peer.is_closed


def test_client_that_goes_away_in_the_middle_leaves_nothing_behind(world):
    world.checks.holds = True
    peer, client = dial(world), ScramClient()
    say(peer, "SCRAM-SHA-256", client.first)
    secure_ok(peer, client.final(ask_for(peer)))
    peer.vanish()
    world.checks.finish_all()
    assert peer.take() == []
    assert world.amqp_counts.connections == 0


# New secrets


def log_in(world, secret):
    return world.client(user="x", password=secret.decode())


def update(peer, secret):
    return peer.send(Connection.UpdateSecret(secret.decode(), "it ends"), channel=0)


def test_a_new_token_of_the_same_user_puts_the_end_off(world):
    first = token(world, 10)
    peer, other = log_in(world, first), log_in(world, first)
    (answer,) = update(peer, token(world, 1_000)).take()
    assert isinstance(answer, Connection.UpdateSecretOk)
    world.now_ms += 20_000
    assert world.authenticator.may_stay("amqp", peer.handler.identity)
    assert not world.authenticator.may_stay("amqp", other.handler.identity)


def test_a_new_token_brings_its_rights(world):
    peer = log_in(world, token(world))
    assert isinstance(peer.call(Queue.Declare(queue="q"), 1), Queue.DeclareOk)
    update(peer, token(world, groups=["all"])).take()
    assert isinstance(peer.call(Queue.Declare(queue="other"), 1), Queue.DeclareOk)


@pytest.mark.parametrize(
    "make_secret",
    [
        lambda world: token(world, -10),
        lambda world: token(world, sub="bob"),
        lambda _: b"a password",
        lambda _: b"",
    ],
)
@pytest.mark.parametrize("holds", [False, True])
def test_a_token_that_is_wrong_or_anothers_ends_the_connection(world, make_secret, holds):
    peer = log_in(world, token(world))
    world.checks.holds = holds
    update(peer, make_secret(world))
    world.checks.finish_all()
    (close,) = peer.take()
    assert (close.reply_code, close.reply_text) == (
        530,
        "NOT_ALLOWED - New secret was refused by one of the backends",
    )
    assert (close.class_id, close.method_id) == (10, 70)


def test_of_two_new_tokens_the_later_counts_and_each_is_answered(world):
    peer = log_in(world, token(world, 10))
    world.checks.holds = True
    update(peer, token(world, 20))
    update(peer, token(world, 1_000))
    assert peer.take() == []
    world.checks.finish_all()
    assert [type(one) for one in peer.take()] == [Connection.UpdateSecretOk] * 2
    world.now_ms += 500_000
    assert world.authenticator.may_stay("amqp", peer.handler.identity)


def test_a_password_does_not_run_out_and_is_not_looked_at(world):
    peer = world.client(user="alice", password="secret")
    (answer,) = update(peer, b"odd").take()
    assert isinstance(answer, Connection.UpdateSecretOk)


@pytest.mark.parametrize(("tags", "may"), [(("impersonator",), True), (("administrator",), False), ((), False)])
def test_who_has_the_tag_for_it_publishes_in_the_name_of_others(tmp_path, engine_maker, tags, may):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    world.authenticator.keep_users(world.broker.table("auth_users"))
    stored = world.authenticator.stored
    stored.put_user("ann", quick_hash("secret"), tags, "")
    stored.set_names("/", "ann", NameRow(".*", ".*", ".*"))
    world.turn()
    peer = world.client(user="ann", password="secret")
    peer.declare("q")
    peer.publish(b"x", key="q", user_id="bob")
    found = peer.call(Basic.Get(queue="q", no_ack=True))
    assert (found.properties.user_id if may else found.reply_code) == ("bob" if may else 406)
    world.close()
