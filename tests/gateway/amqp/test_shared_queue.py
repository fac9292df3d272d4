from __future__ import annotations

import shutil

import pytest
from pamqp.commands import Basic, Confirm, Queue

from core.errors import QueueLimitError
from gateway.amqp.shared_queue import TAKE_COUNT_MAX, TURN_BYTES_MAX


class Taker:
    """A consumer that takes what it has room for."""

    rank = 0

    def __init__(self, room=1_000_000):
        self.left = room
        self.got = []
        self.flushes = 0
        self.is_told = False

    def room(self):
        return self.left

    def deliver(self, stored):
        self.left -= stored.count
        self.got += [bytes(stored.buf[stored.body_start[i] : stored.body_end[i]]) for i in range(stored.count)]

    def flush(self):
        self.flushes += 1

    channel = None

    def on_queue_deleted(self):
        pass

    def tell_deleted(self):
        self.is_told = True


@pytest.fixture
def queue(world):
    return world.amqp.vhost.add("q", durable=True, auto_delete=False, owner=None, arguments={})


def publish(world, *bodies):
    world.client().publish(*bodies, key="q")


@pytest.mark.here(reason="consumers share what is here at a time")
def test_each_consumer_gets_its_share(world, queue):
    takers = [Taker(), Taker(), Taker()]
    for taker in takers:
        queue.add_consumer(taker)
    publish(world, *[b"%d" % i for i in range(90)])
    assert [len(taker.got) for taker in takers] == [30, 30, 30]
    assert sorted(body for taker in takers for body in taker.got) == sorted(b"%d" % i for i in range(90))
    assert [taker.flushes for taker in takers] == [1, 1, 1]


def test_who_has_no_room_is_passed_over(world, queue):
    full, half, free = Taker(0), Taker(5), Taker()
    for taker in (full, half, free):
        queue.add_consumer(taker)
    publish(world, *[b"x"] * 50)
    assert [len(taker.got) for taker in (full, half, free)] == [0, 5, 45]


def test_what_was_there_before_the_consumer_is_handed_out(world, queue):
    publish(world, b"1", b"2")
    taker = Taker()
    queue.add_consumer(taker)
    world.turn()
    assert taker.got == [b"1", b"2"]


@pytest.mark.here(reason="counts what one turn hands out")
def test_a_long_queue_is_handed_out_over_several_turns(world, queue):
    body = b"x" * 100_000
    count = TURN_BYTES_MAX // len(body) + 20
    for _ in range(4):
        publish(world, *[body] * (count // 4 + 1))
    taker = Taker()
    queue.add_consumer(taker)
    world.is_turn_due = False
    world.broker.run_turn(world.now_ms)
    assert 0 < len(taker.got) < count
    assert world.is_turn_due
    world.turn()
    assert len(taker.got) >= count


def test_more_than_one_take_is_handed_out_in_a_turn(world, queue):
    taker = Taker()
    queue.add_consumer(taker)
    publish(world, *[b"x"] * (TAKE_COUNT_MAX + 500))
    assert len(taker.got) == TAKE_COUNT_MAX + 500


def test_nobody_is_handed_anything_after_the_end(world, queue):
    taker = Taker()
    queue.add_consumer(taker)
    world.amqp.vhost.remove(queue)
    assert taker.is_told
    publish(world, b"x")
    queue.run_soon()
    world.turn()
    assert taker.got == []


def test_a_queue_without_consumers_is_not_read(world, queue):
    taker = Taker()
    queue.add_consumer(taker)
    queue.remove_consumer(taker)
    publish(world, b"x")
    assert taker.got == []
    assert queue.pop.ready_count == 1


def declare_short(world, length, **arguments):
    peer = world.client()
    peer.declare("q", arguments={"x-max-length": length, **arguments})
    return peer


def count(peer, queue="q"):
    return peer.declare(queue, passive=True).message_count


def test_the_oldest_go_where_there_are_more_than_the_queue_holds(world):
    peer = declare_short(world, 3)
    peer.publish(*[b"%d" % number for number in range(5_000)], key="q")
    assert count(peer) == 3
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"4997"
    assert world.amqp_counts.dropped == {"maxlen": 4_997}


def test_messages_that_consumers_have_take_no_room_until_they_are_given_back(world):
    peer = declare_short(world, 2)
    peer.publish(b"a", b"b", key="q")
    had = [peer.call(Basic.Get(queue="q")) for _ in range(2)]
    peer.publish(b"c", b"d", key="q")
    assert count(peer) == 2
    peer.send(Basic.Nack(had[1].tag, multiple=True, requeue=True))
    assert count(peer) == 2
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"c"


def test_a_queue_without_room_hands_messages_to_consumers_alone(world):
    peer = declare_short(world, 0)
    peer.publish(b"nobody", key="q").consume("q", no_ack=True)
    peer.publish(b"somebody", key="q")
    assert peer.bodies() == [b"somebody"]
    assert count(peer) == 0


def test_what_is_too_much_goes_to_the_dead_letters_and_says_so(world):
    peer = declare_short(world, 2, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.declare("dead")
    peer.publish(*[b"%d" % number for number in range(300)], key="q")
    world.turn()
    assert (count(peer), count(peer, "dead")) == (2, 298)
    letter = peer.call(Basic.Get(queue="dead"))
    assert (letter.body, letter.properties.headers["x-first-death-reason"]) == (b"0", "maxlen")


def test_a_length_holds_after_a_restart(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length": 2})
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"1", b"2", b"3", key="q", delivery_mode=2)
    assert count(peer) == 2


def declare_refusing(world, length, queue="q", **arguments):
    peer = world.client()
    peer.declare(queue, arguments={"x-max-length": length, "x-overflow": "reject-publish", **arguments})
    return peer


def outcomes(peer):
    """Return what the publisher is told: numbers that were taken, and those that were refused."""
    taken, refused, until = [], [], 0
    for one in peer.take():
        number = one.delivery_tag
        if isinstance(one, Basic.Nack):
            refused.append(number)
        else:
            taken += range(until + 1 if one.multiple else number, number + 1)
        until = number
    return taken, refused


def test_a_full_queue_refuses_what_comes_and_keeps_what_it_has(world):
    peer = declare_refusing(world, 2)
    peer.call(Confirm.Select())
    peer.publish(b"a", b"b", b"c", b"d", key="q")
    assert outcomes(peer) == ([1, 2], [3, 4])
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"a"
    peer.publish(b"e", b"f", key="q")
    assert outcomes(peer) == ([5], [6])
    assert [peer.call(Basic.Get(queue="q", no_ack=True)).body for _ in range(2)] == [b"b", b"e"]
    assert world.amqp_counts.dropped == {"maxlen": 3}


def test_what_a_full_queue_refuses_goes_to_the_others(world):
    peer = declare_refusing(world, 1)
    peer.declare("wide")
    for queue in ("q", "wide"):
        peer.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    peer.call(Confirm.Select())
    peer.publish(b"a", b"b", exchange="amq.fanout")
    assert outcomes(peer) == ([1], [2])
    assert (count(peer), count(peer, "wide")) == (1, 2)


def test_a_device_publishes_past_a_full_queue(world):
    peer = declare_refusing(world, 1)
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.*"))
    device = world.client_of_mqtt(b"d", (b"a/b", 1))
    for text in (b"1", b"2"):
        device.publish(b"a/b", text, qos=1)
    world.turn()
    assert (count(peer), len(device.bodies())) == (1, 2)


def test_a_full_queue_takes_as_many_more_as_its_consumers(world):
    peer = declare_refusing(world, 2)
    peer.call(Basic.Qos(prefetch_count=3))
    peer.consume("q")
    publisher = world.client()
    publisher.call(Confirm.Select())
    publisher.publish(*[b"%d" % number for number in range(7)], key="q")
    assert outcomes(publisher) == ([1, 2, 3, 4, 5], [6, 7])
    assert peer.bodies() == [b"0", b"1", b"2"]


def test_a_queue_that_takes_nothing_takes_nothing_for_its_consumers_either(world):
    peer = declare_refusing(world, 0)
    peer.consume("q", no_ack=True)
    peer.publish(b"a", key="q")
    assert peer.bodies() == []


def test_what_is_given_back_to_a_full_queue_stays(world):
    peer = declare_refusing(world, 1)
    peer.publish(b"a", key="q")
    had = peer.call(Basic.Get(queue="q"))
    peer.publish(b"b", key="q").send(Basic.Nack(had.tag, requeue=True))
    assert count(peer) == 2


def test_expired_messages_make_room_in_a_full_queue(world):
    peer = declare_refusing(world, 1, **{"x-message-ttl": 100})
    peer.publish(b"a", key="q")
    world.now_ms += 200
    peer.publish(b"b", key="q").publish(b"c", key="q")
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"c"


def test_a_deleted_queue_refuses_nothing_in_the_name_of_the_next(world):
    peer = declare_refusing(world, 0)
    peer.call(Queue.Delete(queue="q"))
    world.turn()
    peer.declare("q")
    peer.publish(b"a", key="q")
    assert count(peer) == 1


def test_a_queue_refuses_after_a_restart_as_before(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"1", b"2", key="q", delivery_mode=2)
    assert count(peer) == 1


QUORUM = {"x-queue-type": "quorum"}


def give_back(peer, message):
    peer.send(Basic.Nack(message.tag, requeue=True))


def test_a_quorum_queue_counts_deliveries_and_ends_them_at_its_limit(world):
    peer = world.client()
    peer.declare("dead", durable=True)
    limit = {"x-delivery-limit": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments={**QUORUM, **limit})
    peer.publish(b"1", headers={"a": 1})
    peer.publish(b"good")
    peer.consume("q")
    counts = []
    for _ in range(3):
        for message in peer.messages():
            if message.body == b"good":
                peer.send(Basic.Ack(message.tag))
            else:
                counts.append((message.properties.headers or {}).get("x-delivery-count"))
                assert message.properties.headers["a"] == 1
                give_back(peer, message)
    world.turn()
    assert counts == [None, 1, 2]
    peer.consume("dead", "d")
    (dead,) = peer.messages()
    assert dead.body == b"1"
    assert dead.properties.headers["x-death"][0]["reason"] == "delivery_limit"


def test_a_lost_connection_counts_as_giving_back(world):
    world.client().declare("q", durable=True, arguments={**QUORUM, "x-delivery-limit": 1})
    world.client().publish(b"1")
    for expected in (None, 1):
        peer = world.client()
        peer.consume("q")
        (message,) = peer.messages()
        assert (message.properties.headers or {}).get("x-delivery-count") == expected
        peer.vanish()
    assert world.client().declare("q", durable=True, passive=True).message_count == 0


def test_a_quorum_queue_that_says_nothing_gives_a_message_one_and_twenty_times(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments=QUORUM)
    peer.publish(b"1")
    peer.consume("q")
    number = 0
    while messages := peer.messages():
        number += 1
        give_back(peer, messages[0])
    assert number == 21
    peer.declare("r", durable=True, arguments={**QUORUM, "x-delivery-limit": -1})
    peer.publish(b"1", key="r")
    peer.consume("r", "r")
    for _ in range(50):
        (message,) = peer.messages()
        give_back(peer, message)


def test_messages_of_devices_are_counted_too(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments=QUORUM)
    peer.send(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#")).take()
    world.client_of_mqtt(b"d").publish(b"a/b", b"1", qos=1)
    for expected in (None, 1):
        message = peer.consume("q", f"c{expected}").messages()[0]
        assert message.properties.headers.get("x-delivery-count") == expected
        assert message.properties.headers["x-client-id"] == "d"
        peer.call(Basic.Cancel(f"c{expected}"))
        give_back(peer, message)


def test_consumers_of_a_higher_priority_are_served_first_while_they_have_room(world):
    low, high = world.client(), world.client()
    low.declare("q", durable=True)
    low.consume("q").take()
    high.send(Basic.Qos(prefetch_count=2)).take()
    high.consume("q", arguments={"x-priority": 10}).take()
    low.publish(*[b"%d" % i for i in range(5)])
    first = high.messages()
    assert [one.body for one in first] == [b"0", b"1"]
    assert low.bodies() == [b"2", b"3", b"4"]
    high.send(Basic.Ack(first[1].tag, multiple=True))
    low.publish(b"5")
    assert (high.bodies(), low.bodies()) == ([b"5"], [])


def test_one_consumer_at_a_time_has_the_messages_in_the_order_they_came(world):
    peers = [world.client() for _ in range(3)]
    peers[0].declare("q", durable=True, arguments={"x-single-active-consumer": True})
    for peer in peers:
        peer.send(Basic.Qos(prefetch_count=1)).take()
        peer.consume("q").take()
    peers[0].publish(b"0", b"1", b"2")
    assert [peer.bodies() for peer in peers] == [[b"0"], [], []]  # though it has no room for more
    peers[1].call(Basic.Cancel("c"))
    peers[0].vanish()
    (again,) = peers[2].messages()
    assert (again.body, again.method.redelivered) == (b"0", True)
    peers[2].send(Basic.Ack(again.tag))
    assert peers[2].bodies() == [b"1"]


def declare_light(world, size, **arguments):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length-bytes": size, **arguments})
    return peer


def drain(peer, queue="q"):
    """Return the bodies that a queue gives, and finish them."""
    got = []
    while not isinstance(one := peer.call(Basic.Get(queue=queue, no_ack=True)), Basic.GetEmpty):
        got.append(one.body)
    return got


def test_the_oldest_go_where_bodies_are_more_than_the_queue_holds(world):
    peer = declare_light(world, 10)
    peer.publish(b"aaaa", b"bbbb", b"cccc", key="q", headers={"long": "x" * 100})
    assert count(peer) == 2
    peer.publish(b"d" * 13, b"e", key="q")
    assert drain(peer) == [b"e"]
    assert world.amqp_counts.dropped == {"maxlen": 4}


def test_bytes_that_consumers_have_take_no_room_until_they_are_given_back(world):
    peer = declare_light(world, 10)
    peer.publish(b"aaaa", b"bbbb", key="q")
    had = [peer.call(Basic.Get(queue="q")) for _ in range(2)]
    peer.publish(b"cccc", b"dddd", key="q")
    assert count(peer) == 2
    peer.send(Basic.Nack(had[1].tag, multiple=True, requeue=True))
    assert drain(peer) == [b"cccc", b"dddd"]


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_queue_refuses_a_body_that_has_no_room_and_takes_smaller_ones(world, overflow):
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer = declare_light(world, 10, **{"x-overflow": overflow}, **letters)
    peer.declare("dead")
    peer.call(Confirm.Select())
    peer.publish(b"aaaa", b"bbbb", b"cccc", b"d", b"ee", b"", b"f" * 30, b"g", key="q")
    assert outcomes(peer) == ([1, 2, 4, 6, 8], [3, 5, 7])
    assert drain(peer) == [b"aaaa", b"bbbb", b"d", b"", b"g"]
    world.turn()
    assert sorted(drain(peer, "dead")) == ([b"cccc", b"ee", b"f" * 30] if overflow.endswith("dlx") else [])


def test_a_consumer_with_room_takes_what_is_larger_than_the_queue_holds(world):
    peer = declare_light(world, 1, **{"x-overflow": "reject-publish"})
    peer.consume("q", no_ack=True)
    peer.publish(b"large", key="q")
    assert peer.bodies() == [b"large"]


@pytest.mark.here(reason="what is on its way has no size yet")
@pytest.mark.parametrize("is_killed", [False, True])
def test_bytes_are_known_again_after_a_restart(world, is_killed):
    peer = declare_light(world, 60_000, **{"x-overflow": "reject-publish"})
    for _ in range(10):
        peer.publish(*[b"12345"] * 1_200, key="q", delivery_mode=2)
    for _ in range(3):
        peer.call(Basic.Get(queue="q"))
    drained = [peer.call(Basic.Get(queue="q", no_ack=True)).body for _ in range(7)]
    assert drained == [b"12345"] * 7
    if is_killed:
        world.data_dir = shutil.copytree(world.data_dir, world.data_dir / "as-killed")
    world.close()
    world.open()
    peer = world.client()
    peer.call(Confirm.Select())
    peer.publish(b"x" * 36, b"x" * 35, b"y", key="q")
    assert outcomes(peer) == ([2], [1, 3])


def test_a_purged_queue_has_room_for_all_bytes_again(world):
    peer = declare_light(world, 5, **{"x-overflow": "reject-publish"})
    peer.publish(b"12345", b"6", key="q")
    assert peer.call(Queue.Purge(queue="q")).message_count == 1
    peer.publish(b"abcde", key="q")
    assert drain(peer) == [b"abcde"]


def declare_levels(world, highest=5, **arguments):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-priority": highest, **arguments})
    return peer


def publish_levels(peer, *pairs):
    for priority, text in pairs:
        peer.publish(text, key="q", **({} if priority is None else {"priority": priority}))


MIXED = (1, b"a"), (5, b"b"), (0, b"c"), (9, b"d"), (None, b"e"), (1, b"f")


def test_the_highest_priority_goes_first_and_each_in_its_order(world):
    peer = declare_levels(world)
    publish_levels(peer, *MIXED)
    assert count(peer) == 6
    assert drain(peer) == [b"b", b"d", b"a", b"f", b"c", b"e"]
    assert count(peer) == 0


def test_what_is_given_back_has_its_place_in_its_level(world):
    peer = declare_levels(world)
    publish_levels(peer, *MIXED)
    peer.call(Basic.Qos(prefetch_count=4))
    first = peer.consume("q").messages()
    assert [one.body for one in first] == [b"b", b"d", b"a", b"f"]
    peer.send(Basic.Nack(first[1].tag, requeue=True), Basic.Nack(first[2].tag, requeue=True))
    again = peer.messages()
    assert [(one.body, one.method.redelivered) for one in again] == [(b"d", True), (b"a", True)]
    peer.send(Basic.Ack(0, multiple=True))
    assert peer.bodies() == [b"c", b"e"]


def test_levels_outlive_the_process_and_begin_empty_in_a_new_queue(world):
    peer = declare_levels(world)
    publish_levels(peer, *MIXED)
    peer.call(Basic.Get(queue="q"))
    world.close()
    world.open()
    peer = world.client()
    assert count(peer) == 6
    peer.call(Basic.Get(queue="q", no_ack=True))
    assert drain(peer) == [b"d", b"a", b"f", b"c", b"e"]
    publish_levels(peer, *MIXED)
    assert peer.call(Queue.Delete(queue="q")).message_count == 6
    world.turn()
    peer = declare_levels(world)
    assert (count(peer), drain(peer)) == (0, [])
    publish_levels(peer, (1, b"g"))
    assert drain(peer) == [b"g"]


def test_levels_are_purged_together_and_made_on_first_use(world):
    peer = declare_levels(world, 255)
    assert world.store.queue_count() == 1
    publish_levels(peer, *MIXED, (255, b"top"))
    assert world.store.queue_count() == 1 + 4 + 1  # the parent topic's is one
    assert peer.call(Queue.Purge(queue="q")).message_count == 7
    assert drain(peer) == []


def test_a_queue_with_priorities_drops_the_first_where_it_is_too_long(world):
    peer = declare_levels(world, **{"x-max-length": 3})
    publish_levels(peer, *MIXED[:5])
    assert drain(peer) == [b"a", b"c", b"e"]  # as RabbitMQ does: the first are those of the highest priority


@pytest.mark.here(reason="what is on its way has no size yet")
def test_a_queue_with_priorities_holds_so_many_bytes_over_all_levels(world):
    peer = declare_levels(world, **{"x-max-length-bytes": 10, "x-overflow": "reject-publish"})
    peer.call(Confirm.Select())
    publish_levels(peer, (1, b"aaaa"), (5, b"bbbb"), (2, b"cccc"), (0, b"dd"))
    assert outcomes(peer) == ([1, 2, 4], [3])
    assert drain(peer) == [b"bbbb", b"aaaa", b"dd"]


def test_dead_letters_of_all_levels_go_on_and_keep_their_priority(world):
    peer = declare_levels(world, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.declare("dead", arguments={"x-max-priority": 10})
    publish_levels(peer, *MIXED)
    for one in peer.consume("q").messages():
        peer.send(Basic.Reject(one.tag, requeue=False))
    world.turn()
    assert drain(peer, "dead") == [b"d", b"b", b"a", b"f", b"c", b"e"]
    assert count(peer) == 0


def test_messages_of_a_level_outlive_their_time_there(world):
    peer = declare_levels(world, **{"x-message-ttl": 100})
    publish_levels(peer, (3, b"old"), (0, b"old too"))
    world.now_ms += 200
    publish_levels(peer, (3, b"new"))
    assert drain(peer) == [b"new"]


def test_a_message_with_no_time_to_live_reaches_a_waiting_consumer_from_any_level(world):
    peer = declare_levels(world, **{"x-message-ttl": 0})
    peer.consume("q", no_ack=True)
    publish_levels(peer, (3, b"at once"))
    assert peer.bodies() == [b"at once"]


def test_devices_and_fan_out_reach_the_levels_too(world):
    peer = declare_levels(world)
    peer.declare("plain")
    for queue in ("q", "plain"):
        peer.call(Queue.Bind(queue=queue, exchange="amq.topic", routing_key="a.*"))
    peer.publish(b"low", exchange="amq.topic", key="a.b")
    peer.publish(b"high", exchange="amq.topic", key="a.b", priority=4)
    world.client_of_mqtt(b"d").publish(b"a/b", b"device")
    assert drain(peer) == [b"high", b"low", b"device"]
    assert drain(peer, "plain") == [b"low", b"high", b"device"]


def test_a_queue_with_priorities_cannot_be_read_again(world):
    peer = declare_levels(world)
    answer = peer.consume("q", arguments={"x-stream-offset": "first"}).take()[0]
    assert answer.reply_text == "PRECONDITION_FAILED - queue 'q' in vhost '/' has priorities, and cannot be read again"


def test_a_level_that_has_no_room_for_its_light_queue_shares_the_lowest(world, monkeypatch):
    peer = declare_levels(world)
    publish_levels(peer, (1, b"a"))
    monkeypatch.setattr(world.broker.detours.levels.asked.popitem()[1].__class__, "use_level", refuse_level)
    world.amqp.vhost.find("q").watch()
    publish_levels(peer, (4, b"b"))
    assert drain(peer) == [b"a", b"b"]


def refuse_level(_queue, _level):
    raise QueueLimitError(7)
