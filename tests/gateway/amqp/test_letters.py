"""What dead letters say, and where they go: each its own way, though they are written together."""

from __future__ import annotations

from pamqp.commands import Basic, Exchange, Queue

EXCHANGE, KEY = "x-dead-letter-exchange", "x-dead-letter-routing-key"


def take_all(peer, queue):
    """Take all messages of a queue."""
    found = []
    while not isinstance(letter := peer.call(Basic.Get(queue=queue, no_ack=True)), Basic.GetEmpty):
        found.append(letter)
    return found


def reject_all(peer, *queues):
    """Reject all messages of queues in one write, so that their letters are written together."""
    for queue in queues:
        peer.consume(queue, tag=queue)
    last = max(message.tag for message in peer.messages())
    peer.send(Basic.Nack(last, multiple=True, requeue=False))


def declare(peer, name, arguments=None):
    return peer.declare(name, durable=True, arguments=arguments or {})


def test_a_letter_says_what_its_own_message_said(world):
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", {EXCHANGE: "", KEY: "dead"})
    said = [("a", None, 2), ("a", None, 2), ("a", {"n": 1}, 2), ("b", {"n": 2}, 1), ("b", {"n": 2}, 1), ("c", None, 1)]
    for number, (name, headers, mode) in enumerate(said):
        peer.publish(b"%d" % number, key="work", message_id=name, headers=headers, delivery_mode=mode)
    peer.publish(b"6", key="work", message_id="c", delivery_mode=1, expiration="60000")
    reject_all(peer, "work")
    letters = take_all(peer, "dead")
    assert [letter.body for letter in letters] == [b"%d" % number for number in range(7)]
    for letter, (name, headers, mode) in zip(letters, said, strict=False):
        told = letter.properties
        rest = {key: value for key, value in told.headers.items() if "death" not in key}
        assert (told.message_id, rest or None, told.delivery_mode) == (name, headers, mode)
    assert "original-expiration" in letters[6].properties.headers["x-death"][0]
    assert letters[6].properties.expiration is None


def test_letters_of_two_queues_that_are_written_together_each_go_their_way(world):
    peer = world.client()
    declare(peer, "first", {EXCHANGE: "", KEY: "dead"})
    declare(peer, "second", {EXCHANGE: "other"})
    peer.call(Exchange.Declare(exchange="other", exchange_type="direct", durable=True))
    for name in ("dead", "kept"):
        declare(peer, name)
    peer.call(Queue.Bind(queue="kept", exchange="other", routing_key="second"))
    peer.publish(b"1", b"2", key="first").publish(b"3", key="second").publish(b"4", key="first")
    reject_all(peer, "first", "second")
    assert [letter.body for letter in take_all(peer, "dead")] == [b"1", b"2", b"4"]
    (kept,) = take_all(peer, "kept")
    death = kept.properties.headers["x-death"][0]
    assert (kept.body, death["queue"], death["routing-keys"]) == (b"3", "second", ["second"])


def test_letters_go_by_their_headers_where_the_exchange_asks_for_them(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="by", exchange_type="headers", durable=True))
    declare(peer, "work", {EXCHANGE: "by"})
    for name in ("red", "blue"):
        declare(peer, name)
        peer.call(Queue.Bind(queue=name, exchange="by", arguments={"x-match": "all", "colour": name}))
    for number, colour in enumerate(("red", "blue", "green", "red")):
        peer.publish(b"%d" % number, key="work", headers={"colour": colour})
    reject_all(peer, "work")
    assert [letter.body for letter in take_all(peer, "red")] == [b"0", b"3"]
    assert [letter.body for letter in take_all(peer, "blue")] == [b"1"]
    assert world.amqp_counts.dropped == {"unroutable": 1}


def test_a_letter_of_a_device_tells_its_publisher(world):
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", {EXCHANGE: "", KEY: "dead"})
    peer.call(Queue.Bind(queue="work", exchange="amq.topic", routing_key="plant.#"))
    device = world.client_of_mqtt(b"sensor")
    device.publish(b"plant/1", b"x")
    device.publish(b"plant/2", b"y")
    reject_all(peer, "work")
    letters = take_all(peer, "dead")
    assert [letter.properties.headers["x-client-id"] for letter in letters] == ["sensor", "sensor"]
    keys = [letter.properties.headers["x-death"][0]["routing-keys"] for letter in letters]
    assert keys == [["plant.1"], ["plant.2"]]


def test_a_gateway_that_stops_stores_the_letters_that_wait(world):
    peer = world.client()
    declare(peer, "dead")
    declare(peer, "work", {EXCHANGE: "", KEY: "dead"})
    peer.publish(*[b"%d" % number for number in range(500)], key="work", delivery_mode=2).consume("work")
    last = peer.messages()[-1]
    queue = world.amqp.vhost.find("work")
    offsets = world.offsets(*range(last.tag))
    queue.reject(offsets, len(offsets), world.now_ms)
    world.amqp.vhosts.finish(world.now_ms)
    world.turn()
    assert queue.pop.unacked_count == 0
    assert declare(peer, "dead").message_count == last.tag
