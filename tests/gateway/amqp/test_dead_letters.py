"""Messages that are rejected or outlive their time go on as dead letters; what RabbitMQ 3.10.8 does was compared."""

from __future__ import annotations

from functools import partial

import pytest
from pamqp.commands import Basic, Exchange, Queue

from gateway.amqp.door import EXPIRY_INTERVAL_MS
from tests.support.amqp_door import AmqpWorld
from tests.support.full_engine import FullEngine
from tests.support.late_engine import make_late

EXCHANGE, KEY = "x-dead-letter-exchange", "x-dead-letter-routing-key"
ODD = "{unacceptable_type,signedint}"
TO_DEAD = {EXCHANGE: "", KEY: "dead"}


def get(peer, queue):
    """Take a message, and finish it."""
    answer = peer.call(Basic.Get(queue=queue, no_ack=True))
    return None if isinstance(answer, Basic.GetEmpty) else answer


def reject(peer, queue="work"):
    answer = peer.call(Basic.Get(queue=queue))
    peer.send(Basic.Nack(answer.tag, requeue=False))


def later(world, for_ms):
    """Let time go by, with what the door does at its intervals."""
    for _ in range(for_ms // EXPIRY_INTERVAL_MS):
        world.now_ms += EXPIRY_INTERVAL_MS
        world.broker.handle_timer(world.now_ms)
        world.amqp.vhosts.expire_first(world.now_ms)
        world.turn()


def declare(peer, name, arguments=None, **options):
    return peer.declare(name, durable=True, arguments=arguments or {}, **options)


@pytest.fixture
def peer(world):
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", TO_DEAD)
    return peer


def test_an_expired_message_goes_on_at_its_moment(world, peer):
    wakes = []
    world.broker.timer.wake_at = wakes.append
    peer.publish(b"late", key="work", expiration="70").publish(b"later", key="work", expiration="90")
    assert wakes[-1] == world.now_ms + 70
    for body, at_ms in ((b"late", 70), (b"later", 20)):
        world.now_ms += at_ms
        assert wakes[-1] == world.now_ms
        world.broker.timer.ring()
        world.turn()
        assert get(peer, "dead").body == body


def test_an_expired_message_goes_on_at_its_moment_when_one_before_it_was_got(world, peer):
    wakes = []
    world.broker.timer.wake_at = wakes.append
    peer.publish(b"stays", key="work").publish(b"late", key="work", expiration="70")
    assert peer.call(Basic.Get(queue="work")).body == b"stays"
    assert wakes == [world.now_ms + 70]
    world.now_ms += 70
    world.broker.timer.ring()
    world.turn()
    assert get(peer, "dead").body == b"late"


def test_a_rejected_message_goes_on_and_says_so(world, peer):
    peer.publish(b"bad", b"good", key="work", message_id="m")
    reject(peer)
    letter = get(peer, "dead")
    assert (letter.body, letter.properties.message_id, letter.method.exchange) == (b"bad", "m", "")
    assert letter.properties.headers["x-death"][0]["reason"] == "rejected"
    assert letter.properties.headers["x-first-death-queue"] == "work"
    assert get(peer, "work").body == b"good"
    assert world.amqp_counts.dropped == {}
    assert world.amqp_counts.dead_letters == {"rejected": 1}


def test_many_rejected_in_one_go_keep_their_order(world, peer):
    bodies = [b"%d" % number for number in range(300)]
    peer.publish(*bodies, key="work").consume("work")
    last = peer.messages()[-1]
    peer.send(Basic.Nack(last.tag, multiple=True, requeue=False))
    assert [get(peer, "dead").body for _ in bodies] == bodies
    assert peer.declare("work", passive=True).message_count == 0


def test_an_expired_message_goes_on_though_nobody_looks_at_its_queue(world, peer):
    declare(peer, "wait", {**TO_DEAD, "x-message-ttl": 1_000})
    peer.publish(b"1", key="wait").publish(b"2", key="work", expiration="700")
    later(world, 500)
    assert get(peer, "dead") is None
    later(world, 1_000)
    letters = [get(peer, "dead") for _ in range(2)]
    assert [letter.body for letter in letters] == [b"2", b"1"]
    assert [letter.properties.expiration for letter in letters] == [None, None]
    assert letters[0].properties.headers["x-death"][0]["original-expiration"] == "700"


def test_more_expired_than_are_done_in_one_go_all_go_on(world, peer):
    declare(peer, "wait", {**TO_DEAD, "x-message-ttl": 100})
    peer.publish(*[b"%d" % number for number in range(600)], key="wait")
    later(world, 1_500)
    assert peer.declare("dead", passive=True).message_count == 600


def test_what_expires_after_a_restart_goes_on_too(world, peer):
    declare(peer, "wait", {**TO_DEAD, "x-message-ttl": 1_000})
    peer.publish(b"x", key="wait", delivery_mode=2)
    world.close()
    world.open()
    later(world, 1_500)
    assert get(world.client(), "dead").body == b"x"


def test_work_that_fails_waits_in_a_queue_and_comes_back_as_often_as_it_is_rejected(world, peer):
    declare(peer, "job", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "pause"})
    declare(peer, "pause", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "job", "x-message-ttl": 500})
    peer.publish(b"x", key="job")
    for _ in range(3):
        reject(peer, "job")
        later(world, 750)
        assert peer.declare("job", passive=True).message_count == 1
    letter = get(peer, "job")
    assert [(one["queue"], one["count"]) for one in letter.properties.headers["x-death"]] == [("pause", 3), ("job", 3)]


def test_a_message_that_would_go_round_by_itself_ends(world, peer):
    declare(peer, "loop", {"x-dead-letter-exchange": "", "x-message-ttl": 100})
    peer.publish(b"x", key="loop")
    later(world, 2_000)
    assert peer.declare("loop", passive=True).message_count == 0
    assert world.amqp_counts.dropped == {"unroutable": 1}


def test_a_letter_goes_by_its_own_key_and_to_devices_too(world, peer):
    declare(peer, "plant", {"x-dead-letter-exchange": "amq.topic"})
    peer.send(Queue.Bind(queue="plant", exchange="amq.topic", routing_key="plant.#"))
    device = world.client_of_mqtt(b"d", (b"plant/failed/#", 1))
    world.client_of_mqtt(b"p").publish(b"plant/failed/1", b"21.5", qos=1)
    assert device.bodies() == [b"21.5"]
    peer.take()
    reject(peer, "plant")
    assert device.bodies() == [b"21.5"]
    again = peer.call(Basic.Get(queue="plant"))
    assert (again.method.routing_key, again.properties.headers["x-client-id"]) == ("plant.failed.1", "p")


@pytest.mark.parametrize("exchange", ["no-such", "unbound"])
def test_a_letter_that_leads_nowhere_is_gone(world, peer, exchange):
    peer.call(Exchange.Declare(exchange="unbound", exchange_type="direct"))
    declare(peer, "q", {"x-dead-letter-exchange": exchange})
    peer.publish(b"x", key="q")
    reject(peer, "q")
    assert declare(peer, "q", {"x-dead-letter-exchange": exchange}).message_count == 0
    assert world.amqp_counts.dropped == {"unroutable": 1}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({KEY: "k"}, f"invalid arg '{KEY}' for queue 'q' in vhost '/': routing_key_but_no_dlx_defined"),
        ({EXCHANGE: 70_000}, f"invalid type 'signedint' for arg '{EXCHANGE}' in queue 'q' in vhost '/'"),
        ({EXCHANGE: "", KEY: 70_000}, f"invalid arg '{KEY}' for queue 'q' in vhost '/': {ODD}"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_rabbitmqs_words(world, arguments, text):
    close = world.client().declare("q", arguments=arguments)
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_killed_gateway_has_each_message_or_its_letter(tmp_path, engine_maker, is_flushed):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", TO_DEAD)
    peer.publish(b"x", key="work", delivery_mode=2)
    world.flushes_by_itself = False
    reject(peer)
    if is_flushed:
        world.store.flush()
    assert world.amqp.vhost.find("work").pop.unacked_count == 1  # until it is told that its letter is safe
    world.close()
    world.open()
    peer = world.client()
    assert get(peer, "dead").body == b"x"
    assert get(peer, "work") is None  # its letter says that it is done
    world.close()


def test_a_letter_that_is_lost_on_its_way_is_written_again(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=partial(make_late, failures=1.0))
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", TO_DEAD)
    peer.publish(b"x", key="work")
    world.engine.failures = 1.0
    reject(peer)
    world.turn()
    assert peer.declare("work", passive=True).message_count == 1
    world.engine.failures = 0.0
    reject(peer)
    world.turn()
    assert peer.declare("work", passive=True).message_count == 0
    world.close()


@pytest.mark.at_once(reason="the append itself finds no room")
def test_a_full_disk_delays_letters_and_loses_none(tmp_path):
    world = AmqpWorld(tmp_path, make_engine=FullEngine)
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", TO_DEAD)
    peer.publish(b"1", b"2", key="work")
    for _ in range(2):
        last = peer.call(Basic.Get(queue="work"))
    world.engine.left = 0
    peer.send(Basic.Nack(last.tag, multiple=True, requeue=False))
    assert peer.declare("work", passive=True).message_count == 0
    world.engine.left = None
    later(world, 1_000)
    assert peer.declare("work", passive=True).message_count == 2
    reject(peer)
    assert get(peer, "dead").body == b"1"
    world.close()


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_is_rejected_while_it_is_on_its_way_comes_to_no_consumer_again(tmp_path, seed):
    world = AmqpWorld(tmp_path, make_engine=partial(make_late, seed=seed))
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", TO_DEAD)
    peer.publish(*[b"%d" % number for number in range(20)], key="work").consume("work")
    for message in peer.messages():
        world.engine.away = 1.0
        peer.send(Basic.Nack(message.tag, requeue=False))
    for _ in range(8):
        world.now_ms += 1_000
        world.turn()
    assert peer.messages() == []
    assert peer.declare("work", passive=True).message_count == 0
    assert peer.declare("dead", passive=True).message_count == 20
    world.close()
