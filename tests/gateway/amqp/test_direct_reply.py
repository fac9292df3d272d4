from __future__ import annotations

import pytest
from pamqp.commands import Basic, Queue, Tx

from gateway.amqp.direct_reply import REPLY_TO, is_reply_name, make_reply_name, name_reply
from gateway.amqp.errors import AmqpError
from tests.support import amqp


def listen(peer, channel=1):
    peer.consume(REPLY_TO, "answers", channel, no_ack=True).take()
    return peer


def ask(peer, server, channel=1):
    """Have a client ask and return the name that the server reads."""
    peer.publish(b"question", key="service", channel=channel, reply_to=REPLY_TO, correlation_id="1")
    message = next(one for one in server.messages() if one.body == b"question")
    assert message.properties.correlation_id == "1"
    return message.properties.reply_to


@pytest.fixture
def server(world):
    server = world.client(channels=2)
    server.declare("service")
    server.consume("service", no_ack=True).take()
    return server


def test_an_answer_comes_to_the_client_that_asked(world, server):
    clients = [listen(world.client()) for _ in range(3)]
    names = [ask(client, server) for client in clients]
    assert len(set(names)) == 3
    for client, name in zip(clients, names, strict=True):
        assert is_reply_name(name)
        server.publish(name.encode(), key=name, correlation_id="1")
        (answer,) = client.messages()
        assert (answer.body, answer.method.exchange, answer.method.routing_key) == (name.encode(), "", name)
        assert answer.properties.correlation_id == "1"
    assert ask(clients[0], server) == names[0]


def test_a_name_says_whether_its_client_is_there(world, server):
    client = listen(world.client(channels=2))
    name = ask(client, server)
    there = server.declare(name, 2, passive=True)
    assert (there.queue, there.message_count, there.consumer_count) == (name, 0, 1)
    assert server.declare(REPLY_TO, 2).queue == REPLY_TO
    client.call(Basic.Cancel("answers"))
    server.publish(b"late", key=name, mandatory=True)
    assert [one.method.reply_code for one in server.messages()] == [312]
    close = server.declare(name, 2, passive=True)
    assert close.reply_text == f"NOT_FOUND - no queue '{name}' in vhost '/'"
    listen(client)
    assert ask(client, server) != name


def test_other_publishes_of_one_read_keep_their_place(world, server):
    client = listen(world.client()).confirms()
    plain = amqp.publish(1, b"plain", key="service")
    asked = amqp.publish(1, b"question", key="service", reply_to=REPLY_TO, headers={"BCC": ["service"]})
    client.write(plain, asked, plain, amqp.publish(1, b"other", key="service", reply_to="somewhere.else.and.long"))
    found = server.messages()
    assert [one.body for one in found] == [b"plain", b"question", b"plain", b"other"]
    assert is_reply_name(found[1].properties.reply_to)
    assert found[3].properties.reply_to == "somewhere.else.and.long"


def test_questions_of_one_read_that_say_different_things_all_name_their_channel(world, server):
    client = listen(world.client(channels=2)).confirms()
    said = [("1", REPLY_TO), ("2", REPLY_TO), ("2", REPLY_TO), ("3", "elsewhere"), ("4", REPLY_TO)]
    client.write(*[amqp.publish(1, b"?", key="service", correlation_id=one, reply_to=to) for one, to in said])
    found = [one.properties for one in server.messages()]
    assert [one.correlation_id for one in found] == [one for one, _ in said]
    names = {one.reply_to for one in found}
    assert len(names) == 2
    assert names - {"elsewhere"} == {ask(client, server)}
    listen(client, channel=2)
    assert ask(client, server, channel=2) not in names


def test_a_question_in_a_transaction_names_its_channel(world, server):
    client = world.client()
    client.call(Tx.Select())
    listen(client).publish(b"question", key="service", reply_to=REPLY_TO)
    client.send(Tx.Commit()).take()
    (message,) = server.messages()
    server.publish(b"answer", key=message.properties.reply_to)
    assert client.bodies() == [b"answer"]


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        ([Basic.Consume(queue=REPLY_TO)], "reply consumer cannot acknowledge"),
        ([Basic.Consume(queue=REPLY_TO, no_ack=True)] * 2, "reply consumer already set"),
        ([amqp.publish(1, b"", reply_to=REPLY_TO)], "fast reply consumer does not exist"),
        (
            [Basic.Consume(queue=REPLY_TO, consumer_tag="c", no_ack=True), Basic.Cancel("c"),
             amqp.publish(1, b"", reply_to=REPLY_TO)],
            "fast reply consumer does not exist",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_costs_the_channel(world, methods, text):
    peer = world.client()
    for method in methods:
        peer.write(method if isinstance(method, bytes) else amqp.method(1, method))
    close = peer.take()[-1]
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


def test_the_queue_of_answers_ends_with_its_channel_and_its_connection(world, server):
    client = listen(listen(world.client(channels=2)), 2)
    before = len(world.amqp.vhost)
    from_second = ask(client, server, 2)
    client.send(Queue.Purge(queue="none"), channel=2).take()
    assert len(world.amqp.vhost) == before - 1
    assert server.declare(from_second, 2).reply_code == 404
    client.vanish()
    world.turn()
    assert len(world.amqp.vhost) == before - 2


def test_a_name_takes_the_place_of_the_common_one():
    name = make_reply_name()
    block = amqp.block(content_type="t", reply_to=REPLY_TO, message_id="m")
    start = block.index(REPLY_TO.encode()) - 1
    assert name_reply(block, start, name) == amqp.block(content_type="t", reply_to=name, message_id="m")
    with pytest.raises(AmqpError, match="fast reply consumer does not exist"):
        name_reply(block, start, "")
