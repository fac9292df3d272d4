"""An exchange that delays, and what waits there."""

from __future__ import annotations

from pamqp.commands import Exchange, Queue


def wait(world, ms):
    world.now_ms += ms
    world.broker.request_run(world.broker.timer)
    world.turn()
    while world.broker.has_work:
        world.turn()


def declare(peer, name="later", kind="direct", **arguments):
    arguments = {"x-delayed-type": kind, **arguments}
    method = Exchange.Declare(exchange=name, exchange_type="x-delayed-message", durable=True, arguments=arguments)
    assert isinstance(peer.call(method), Exchange.DeclareOk)


def bind(peer, queue, key, source="later", **arguments):
    peer.declare(queue, durable=True)
    method = Queue.Bind(queue=queue, exchange=source, routing_key=key, arguments=arguments)
    assert isinstance(peer.call(method), Queue.BindOk)


def consuming(world):
    """Return a client that consumes `q`, which is bound to the exchange."""
    peer = world.client()
    declare(peer)
    bind(peer, "q", "a")
    peer.consume("q", no_ack=True)
    peer.take()
    return peer


def publish(peer, text, delay=None, key="a", **options):
    headers = options.pop("headers", {})
    if delay is not None:
        headers["x-delay"] = delay
    return peer.publish(text, exchange="later", key=key, headers=headers, **options)


def counts(peer, *queues):
    return [peer.declare(queue, durable=True).message_count for queue in queues]
