from __future__ import annotations

import pytest
from pamqp.commands import Basic, Queue

from gateway.amqp.answers import Answers
from gateway.amqp.channel import Channel, Incomplete


class Output:
    def __init__(self):
        self.done = []
        self.is_channel_open = True
        self.flushes = 0

    def is_open(self, channel):
        return self.is_channel_open

    def send_method(self, channel, method):
        self.done.append(method.name)

    def flush(self):
        self.flushes += 1


class Durability:
    """Messages are safe at once, what is declared when the test says so."""

    def __init__(self):
        self.waiting = []

    def when_stored(self, ticket, then):
        then(None)

    def when_durable(self, then):
        then(None)

    def when_kept(self, callback):
        self.waiting.append(callback)


@pytest.fixture
def scene():
    durability = Durability()
    output = Output()
    return Answers(durability, output), output, durability.waiting


def test_what_need_not_be_safe_is_answered_at_once(scene):
    answers, output, waiting = scene
    answers.give(Channel(1, Incomplete(0)), Basic.QosOk(), then=lambda: output.done.append("then"))
    answers.give(Channel(1, Incomplete(0)), None)
    assert output.done == ["Basic.QosOk", "then"]
    assert waiting == []


def test_what_follows_a_durable_answer_waits_for_it(scene):
    answers, output, waiting = scene
    answers.give(Channel(1, Incomplete(0)), Queue.BindOk(), is_durable=True)
    answers.give(Channel(1, Incomplete(0)), Basic.QosOk())
    answers.give(Channel(1, Incomplete(0)), None, then=lambda: output.done.append("then"))
    assert output.done == []
    answers.hand_in()
    waiting.pop()(None)
    assert output.done == ["Queue.BindOk", "Basic.QosOk", "then"]
    assert output.flushes == 1
    assert not waiting
    answers.give(Channel(1, Incomplete(0)), Basic.QosOk())
    assert output.done[-1] == "Basic.QosOk"
    assert len(output.done) == 4


def test_a_confirm_waits_for_declarations_and_for_confirms_before_it(scene):
    answers, output, waiting = scene
    note = output.done.append
    answers.when_safe(1, lambda _: note("first"))
    assert output.done == ["first"]
    answers.give(Channel(1, Incomplete(0)), None, is_durable=True)
    answers.when_safe(1, lambda _: note("second"))
    answers.when_safe(1, lambda _: note("third"))
    answers.when_done(lambda: note("done"))
    assert output.done == ["first"]
    waiting.pop(0)(None)
    assert output.done == ["first", "second", "third", "done"]


def test_an_answer_for_a_channel_that_is_gone_is_dropped(scene):
    answers, output, waiting = scene
    answers.give(Channel(1, Incomplete(0)), Queue.BindOk(), is_durable=True, then=lambda: output.done.append("then"))
    answers.hand_in()
    output.is_channel_open = False
    waiting[0](None)
    assert output.done == []
