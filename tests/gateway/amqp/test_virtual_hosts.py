from __future__ import annotations

from pamqp.commands import Connection, Exchange, Queue

from gateway.inventory import take_page


def queues_of(world):
    return sorted((entry.vhost, entry.name) for entry in take_page(world.amqp.inventory().queues(), 1_000))


def test_new_folder_has_one_virtual_host(world):
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/"]
    assert world.amqp.vhosts.find("other") is None


def test_queue_of_one_name_in_two_virtual_hosts_is_two_queues(world):
    world.amqp.vhosts.make("other")
    here, there = world.client(), world.client(vhost="other")
    assert isinstance(there.opening[-1], Connection.OpenOk)
    for peer in (here, there):
        peer.declare("q")
    here.publish(b"here")
    there.publish(b"1", b"2")
    assert here.declare("q", passive=True).message_count == 1
    assert there.declare("q", passive=True).message_count == 2
    assert here.consume("q").bodies() == [b"here"]
    assert there.consume("q").bodies() == [b"1", b"2"]
    assert queues_of(world) == [("/", "q"), ("other", "q")]


def test_virtual_hosts_and_what_they_have_outlive_the_process(world):
    world.amqp.vhosts.make("other")
    peer = world.client(vhost="other")
    peer.declare("kept", durable=True)
    peer.declare("gone")
    peer.publish(b"x", key="kept")
    world.close()
    world.open()
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/", "other"]
    assert queues_of(world) == [("other", "kept")]
    assert world.client(vhost="other").consume("kept").bodies() == [b"x"]


def test_delayed_message_stays_in_its_virtual_host(world):
    world.amqp.vhosts.make("other")
    for vhost in ("/", "other"):
        peer = world.client(vhost=vhost)
        arguments = {"x-delayed-type": "direct"}
        peer.call(Exchange.Declare(exchange="x", exchange_type="x-delayed-message", durable=True, arguments=arguments))
        peer.declare("q", durable=True)
        peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    peer.publish(b"later", exchange="x", key="k", headers={"x-delay": 1_000})
    world.now_ms += 1_100
    world.broker.request_run(world.broker.timer)
    while world.broker.has_work:
        world.turn()
    assert world.client(vhost="other").consume("q").bodies() == [b"later"]
    assert world.client().consume("q").bodies() == []
