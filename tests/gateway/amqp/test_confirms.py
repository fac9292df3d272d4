from __future__ import annotations

from core.errors import StoreClosedError
from core.metrics import DoorMetrics
from gateway.amqp.channel import Channel, Incomplete
from gateway.amqp.confirms import Confirms
from gateway.amqp.methods import encode_ack, encode_nack

LOST = StoreClosedError("lost")


class Answers:
    def __init__(self):
        self.waiting = []

    def when_safe(self, ticket, then):
        self.waiting.append((ticket, then))


class Output:
    def __init__(self):
        self.data = b""
        self.flushes = 0

    def is_open(self, channel):
        return True

    def put(self, data):
        self.data += data

    def flush(self):
        self.flushes += 1


def test_runs_of_one_read_are_confirmed_together_in_one_write():
    answers, output, channel = Answers(), Output(), Channel(1, Incomplete(0))
    confirms = Confirms(answers, output, DoorMetrics("amqp"))
    for ticket in (7, 8):
        channel.published += 3
        confirms.add(ticket, channel, channel.published - 2)
    confirms.hand_in()
    assert [ticket for ticket, _ in answers.waiting] == [7, 8]
    for _, then in answers.waiting:
        then(None)
    assert (output.data, output.flushes) == (encode_ack(1, 6, multiple=True), 1)


def test_a_lost_run_is_refused_between_those_that_are_safe():
    answers, output, channel = Answers(), Output(), Channel(1, Incomplete(0))
    metrics = DoorMetrics("amqp")
    confirms = Confirms(answers, output, metrics)
    for ticket in (1, 2, 3):
        channel.published += 2
        confirms.add(ticket, channel, channel.published - 1)
    confirms.hand_in()
    for (_, then), error in zip(answers.waiting, (None, LOST, None), strict=True):
        then(error)
    refused = encode_nack(1, 3) + encode_nack(1, 4)
    assert output.data == encode_ack(1, 2, multiple=True) + refused + encode_ack(1, 6, multiple=True)
    assert metrics.refused["not_stored"] == 2


def test_nothing_published_asks_for_nothing():
    answers = Answers()
    Confirms(answers, Output(), DoorMetrics("amqp")).hand_in()
    assert answers.waiting == []


def test_what_a_queue_refused_is_refused_among_what_was_taken_and_told_once():
    answers, output, channel = Answers(), Output(), Channel(1, Incomplete(0))
    metrics = DoorMetrics("amqp")
    confirms = Confirms(answers, output, metrics)
    channel.published = 2
    confirms.add(1, channel, 1)
    channel.published = 6
    confirms.add(2, channel, 3, (4, 6))
    confirms.hand_in()
    for _, then in answers.waiting:
        then(None)
    taken = encode_ack(1, 3, multiple=True), encode_ack(1, 5, multiple=False)
    assert output.data == taken[0] + encode_nack(1, 4) + taken[1] + encode_nack(1, 6)
