"""Logins at the door: a password check holds up its own client and nobody else; and what the log says."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Connection, Exchange, Queue

from gateway.auth.denials import SAID_MAX
from gateway.auth.password_checks import WAITING_MAX
from tests.support import amqp
from tests.support.amqp_door import CAPABILITIES, AmqpWorld
from tests.support.logins import quick_hash

JOE = {"password_hash": quick_hash("secret")}


@pytest.fixture
def make_world(tmp_path, engine_maker):
    worlds = []

    def make(**rights):
        world = AmqpWorld(
            tmp_path / f"{len(worlds)}", auth={"users": {"joe": {**JOE, **rights}}}, make_engine=engine_maker
        )
        world.checks.holds = True
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def world(make_world):
    return make_world()


def ask(world, password="secret", *more):
    """Return a client whose credentials are sent, and `more` methods with them."""
    peer = world.accept().write(amqp.PROTOCOL_HEADER)
    peer.take()
    start_ok = Connection.StartOk({"capabilities": CAPABILITIES}, "PLAIN", f"\0joe\0{password}", "en_US")
    return peer.send(start_ok, *more, channel=0)


def test_client_waits_for_its_login_and_the_others_do_not(world):
    waiting = ask(world)
    assert waiting.take() == []
    other = world.client()
    other.declare("q")
    assert other.publish(b"x", key="q").consume("q").bodies() == [b"x"]
    world.checks.finish()
    (tune,) = waiting.take()
    assert isinstance(tune, Connection.Tune)


def test_what_came_with_the_credentials_is_done_after_the_login_in_order(world):
    peer = ask(world, "secret", Connection.TuneOk(2_047, 131_072, 0), Connection.Open("/"))
    assert peer.transport.is_reading
    peer.send(Channel.Open()).send(Queue.Declare(queue="q"))
    assert not peer.transport.is_reading
    assert peer.take() == []
    world.checks.finish()
    world.turn()
    assert peer.transport.is_reading
    kinds = [Connection.Tune, Connection.OpenOk, Channel.OpenOk, Queue.DeclareOk]
    assert [type(one) for one in peer.take()] == kinds


def test_refused_login_is_told(world):
    peer = ask(world, "wrong", Connection.TuneOk(2_047, 131_072, 0))
    world.checks.finish()
    (close,) = peer.take()
    assert close.reply_code == 403
    assert peer.is_closed
    assert world.amqp_counts.refused == {"login": 1}


def test_client_that_goes_away_during_its_login_leaves_nothing_behind(world):
    peer = ask(world)
    peer.vanish()
    world.checks.finish_all()
    assert peer.take() == []
    assert world.amqp_counts.connections == 0


def test_time_for_the_handshake_goes_on_during_the_login(world):
    peer = ask(world)
    world.now_ms += world.amqp_settings.handshake_timeout_ms
    peer.handler.on_timer(world.now_ms)
    assert peer.is_closed
    world.checks.finish_all()
    assert peer.take() == []


def test_client_that_sends_no_more_during_its_login_is_served_and_closed(world):
    peer = ask(world, "secret", Connection.TuneOk(2_047, 131_072, 0), Connection.Open("/"))
    peer.end(amqp.method(1, Channel.Open()))
    world.checks.finish()
    world.turn()
    assert isinstance(peer.take()[-1], Channel.OpenOk)
    assert peer.is_closed


def test_client_that_closes_during_its_login_is_not_checked(world):
    ask(world, "1")
    peer = ask(world, "2").end()
    world.turn()
    assert peer.is_closed
    world.checks.finish_all()
    assert world.checks.count == 1
    assert peer.take() == []


def test_client_is_told_to_come_again_where_too_many_wait(world):
    peers = [ask(world, str(number)) for number in range(WAITING_MAX + 2)]
    (close,) = [one for peer in peers if peer.is_closed for one in peer.take()]
    assert close.reply_code == 320


def test_guest_is_refused_behind_a_proxy(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path / "proxied", auth={"behind_proxy": True}, make_engine=engine_maker)
    peer = world.log_in()
    assert peer.opening[-1].reply_code == 403
    world.close()


def test_login_and_refusal_are_logged_once_with_the_name(world, caplog):
    caplog.set_level("INFO")
    world.checks.holds = False
    ask(world, "secret")
    ask(world, "wrong")
    said = [(one.levelname, one.getMessage()) for one in caplog.records if "login" in one.name]
    assert said == [
        ("INFO", "logged in conn=1 peer=127.0.0.1:40001 client= user=joe"),
        (
            "WARNING",
            "login refused conn=2 peer=127.0.0.1:40002 client= user=joe reason=wrong password or secret",
        ),
    ]


def test_flood_of_denied_publishes_is_a_few_lines_and_a_count(make_world, caplog):
    caplog.set_level("INFO")
    world = make_world(may_publish=False)
    world.checks.holds = False
    peer = world.client(user="joe", password="secret")
    before = len(caplog.records)
    for number in range(100):
        peer.publish(b"x", exchange="amq.topic", key=f"a.{number}")
        (close,) = peer.take()
        assert close.reply_code == 403
        peer.send(Channel.CloseOk(), Channel.Open())
        peer.take()
    peer.vanish()
    said = [one.getMessage() for one in caplog.records[before:]]
    conn_id = peer.transport.conn_id
    assert said[0] == f"denied publish conn={conn_id} user=joe name=exchange 'amq.topic' key 'a.0'"
    assert said[-1] == f"denied more conn={conn_id} user=joe count={100 - SAID_MAX}"
    assert len(said) == SAID_MAX + 1


def test_denied_operations_are_logged(make_world, caplog):
    world = make_world(may_configure=False, may_subscribe=False)
    world.checks.holds = False
    world.client().declare("q")
    for method in (Queue.Declare(queue="r"), Basic.Consume(queue="q")):
        assert world.client(user="joe", password="secret").call(method).reply_code == 403
    said = [one.getMessage().partition(" user")[2] for one in caplog.records if "denials" in one.name]
    assert said == ["=joe name=queue 'r'", "=joe name=queue 'q'"]


def refusal(world, method, **more):
    (close,) = world.client(user="joe", password="secret").send(method).take()
    return close.reply_code, close.reply_text


@pytest.mark.parametrize(
    ("rights", "method", "text"),
    [
        (
            {"may_publish": False},
            Queue.Declare(queue="q", arguments={"x-dead-letter-exchange": ""}),
            "write access to exchange 'amq.default'",
        ),
        (
            {"may_subscribe": False},
            Queue.Declare(queue="q", arguments={"x-dead-letter-exchange": "e"}),
            "read access to queue 'q'",
        ),
        (
            {"may_publish": False},
            Exchange.Declare(exchange="e", arguments={"alternate-exchange": "f"}),
            "write access to exchange 'f'",
        ),
        (
            {"may_subscribe": False},
            Exchange.Declare(exchange="e", arguments={"alternate-exchange": "f"}),
            "read access to exchange 'e'",
        ),
    ],
)
def test_what_hands_on_asks_for_the_right_to_read_there_and_to_write_elsewhere(make_world, rights, method, text):
    world = make_world(**rights)
    world.checks.holds = False
    expected = (403, f"ACCESS_REFUSED - {text} in vhost '/' refused for user 'joe'")
    assert refusal(world, method) == expected


def test_the_default_exchange_is_called_amq_default_where_it_is_refused(make_world):
    world = make_world(may_publish=False)
    world.checks.holds = False
    (close,) = world.client(user="joe", password="secret").publish(b"x", key="q").take()
    text = "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'joe'"
    assert close.reply_text == text
