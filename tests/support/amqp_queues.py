"""What tests of AMQP queues count, take and are told."""

from __future__ import annotations

from pamqp.commands import Basic


def count(peer, queue="q"):
    return peer.declare(queue, passive=True).message_count


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


def give_back(peer, message):
    peer.send(Basic.Nack(message.tag, requeue=True))


def drain(peer, queue="q"):
    """Return the bodies that a queue gives, and finish them."""
    got = []
    while not isinstance(one := peer.call(Basic.Get(queue=queue, no_ack=True)), Basic.GetEmpty):
        got.append(one.body)
    return got
