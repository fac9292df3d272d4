"""Policies: which holds for what, and what becomes of queues that are there when one changes."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Queue

from gateway.amqp.policies import InvalidPolicyError, Policy


def put(world, name, pattern, definition, **options):
    world.amqp.vhosts.put_policy(Policy("/", name, pattern, definition, **options))
    world.turn()


def delete(world, name, **options):
    world.amqp.vhosts.delete_policy(world.amqp.vhosts.policies.find("/", name, **options))
    world.turn()


def count(peer, queue="q"):
    return peer.declare(queue, passive=True).message_count


def terms_of(world, name="q"):
    return world.amqp.vhost.find(name).terms


def test_the_policy_with_the_highest_priority_holds_alone(world):
    peer = world.client()
    put(world, "low", "q", {"max-length": 1, "message-ttl": 5})
    put(world, "high", "^q$", {"max-length": 9}, priority=1)
    put(world, "other", "^r", {"max-length": 2}, priority=7)
    put(world, "exchanges", "q", {"alternate-exchange": "x"}, priority=9, apply_to="exchanges")
    peer.declare("q", durable=True)
    assert (terms_of(world).length_max, terms_of(world).message_ttl_ms) == (9, -1)
    assert world.amqp.vhost.find("q").ruling.policy.name == "high"
    delete(world, "high")
    assert (terms_of(world).length_max, terms_of(world).message_ttl_ms) == (1, 5)
    delete(world, "low")
    assert terms_of(world).length_max == -1


def test_of_arguments_policies_and_operator_policies_the_strictest_number_holds(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length": 5, "x-dead-letter-exchange": "mine"})
    put(world, "p", "q", {"max-length": 7, "expires": 50_000, "dead-letter-exchange": "theirs", "message-ttl": 9})
    put(world, "p", "q", {"max-length": 3, "expires": 60_000, "delivery-limit": 4}, is_operator=True)
    terms = terms_of(world)
    assert (terms.length_max, terms.unused_ms, terms.message_ttl_ms) == (3, 50_000, 9)
    assert (terms.dead_letter_exchange, terms.delivery_limit) == ("mine", -1)
    assert world.amqp.vhost.find("q").ruling.definition["max-length"] == 3


def test_an_operator_says_what_full_queues_do_before_a_policy_does(world):
    world.client().declare("q", durable=True)
    put(world, "p", "q", {"max-length": 7, "overflow": "drop-head"})
    assert not terms_of(world).is_refusing
    put(world, "p", "q", {"overflow": "reject-publish"}, is_operator=True)
    assert terms_of(world).is_refusing


def test_quorum_queues_of_a_policy_without_a_limit_give_messages_again_for_ever(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    put(world, "p", "q", {"delivery-limit": -1})
    assert terms_of(world).delivery_limit == -1
    peer.publish(b"1", key="q")
    for _ in range(25):  # 20 without the policy
        got = peer.call(Basic.Get(queue="q"))
        peer.send(Basic.Reject(got.method.delivery_tag, requeue=True))
    assert count(peer) == 1
    put(world, "p", "q", {"delivery-limit": 3}, is_operator=True)
    assert terms_of(world).delivery_limit == 3


@pytest.mark.parametrize(
    ("kind", "apply_to", "holds"),
    [
        ("classic", "queues", True),
        ("classic", "classic_queues", True),
        ("classic", "quorum_queues", False),
        ("quorum", "quorum_queues", True),
        ("quorum", "all", True),
        ("stream", "streams", True),
        ("stream", "classic_queues", False),
        ("classic", "exchanges", False),
    ],
)
def test_a_policy_is_for_what_it_says(world, kind, apply_to, holds):
    world.client().declare("q", durable=True, arguments={"x-queue-type": kind})
    put(world, "p", "q", {"max-length-bytes": 5}, apply_to=apply_to)
    assert terms_of(world).bytes_max == (5 if holds else -1)


def test_what_means_nothing_to_a_type_of_queue_changes_nothing(world):
    peer = world.client()
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.declare("c", durable=True)
    peer.declare("u", durable=True, arguments={"x-queue-type": "quorum"})
    put(world, "p", "", {"message-ttl": 5, "max-age": "1h", "delivery-limit": 50, "ha-mode": "all"})
    found = {name: terms_of(world, name) for name in "scu"}
    assert [found[name].message_ttl_ms for name in "scu"] == [-1, 5, 5]
    assert [found[name].age_max_ms for name in "scu"] == [3_600_000, -1, -1]
    assert [found[name].delivery_limit for name in "scu"] == [-1, -1, 50]


def test_queues_that_are_there_hold_to_a_new_policy_at_once(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(*[b"%d" % i for i in range(5)], key="q")
    put(world, "p", "q", {"max-length": 2})
    assert count(peer) == 2
    put(world, "p", "q", {"max-length-bytes": 1})
    assert count(peer) == 1
    peer.publish(b"5", key="q")
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"5"
    delete(world, "p")
    peer.publish(b"6", b"7", key="q")
    assert count(peer) == 2


@pytest.mark.parametrize("limit", [{"max-length-bytes": 100}, {"max-length": 100}], ids=str)
def test_a_policy_brings_back_nothing_of_a_deleted_queue_of_the_same_name(world, limit):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(b"old", key="q")
    peer.call(Queue.Delete(queue="q"))
    peer.declare("q", durable=True)
    put(world, "p", "q", limit)
    assert count(peer) == 0
    peer.publish(b"new", key="q")
    assert peer.call(Basic.Get(queue="q")).body == b"new"


def test_a_policy_makes_queues_refuse_and_lets_them_take_again(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.declare("dead", durable=True)
    peer.call(Confirm.Select())
    letters = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}
    put(world, "p", "^q$", {"max-length": 1, "overflow": "reject-publish-dlx", **letters})
    peer.publish(b"1", b"2", key="q")
    assert [type(one) for one in peer.take()] == [Basic.Ack, Basic.Nack]
    world.turn()
    assert count(peer, "dead") == 1
    put(world, "p", "^q$", {"max-length": 1, "overflow": "reject-publish"})
    peer.publish(b"3", key="q")
    assert [type(one) for one in peer.take()] == [Basic.Nack]
    delete(world, "p")
    peer.publish(b"4", b"5", key="q")
    assert [type(one) for one in peer.take()] == [Basic.Ack]
    assert (count(peer), count(peer, "dead")) == (3, 1)


def test_a_lease_begins_and_ends_with_a_policy(world):
    peer = world.client()
    peer.declare("q", durable=True)
    put(world, "p", "q", {"expires": 1_000})
    delete(world, "p")
    for _ in range(3):
        world.now_ms += 2_000
        world.amqp.vhosts.remove_unused(world.now_ms)
        world.turn()
    assert count(peer) == 0
    put(world, "p", "q", {"expires": 1_000})
    for _ in range(3):
        world.now_ms += 2_000
        world.amqp.vhosts.remove_unused(world.now_ms)
        world.turn()
    assert world.amqp.vhost.find("q") is None


def test_an_exchange_has_the_alternate_that_a_policy_gives_it(world):
    peer = world.client()
    peer.send(Exchange.Declare(exchange="x", exchange_type="direct", durable=True)).take()
    peer.declare("q", durable=True)
    peer.call(Queue.Bind(queue="q", exchange="amq.fanout"))
    peer.publish(b"lost", exchange="x", key="k")
    put(world, "p", "^x$", {"alternate-exchange": "amq.fanout"}, apply_to="exchanges")
    peer.publish(b"1", exchange="x", key="k")
    delete(world, "p")
    peer.publish(b"lost too", exchange="x", key="k")
    assert count(peer) == 1


def test_policies_outlive_the_process_and_go_with_their_virtual_host(world):
    world.client().declare("q", durable=True)
    put(world, "p", "q", {"max-length": 2}, priority=-3, apply_to="queues")
    put(world, "p", "q", {"max-length": 3}, is_operator=True)
    world.amqp.vhosts.make("v")
    world.amqp.vhosts.put_policy(Policy("v", "p", "a", {"expires": 5}))
    world.close()
    world.open()
    policies = world.amqp.vhosts.policies
    assert policies.find("/", "p") == Policy("/", "p", "q", {"max-length": 2}, -3, "queues")
    assert terms_of(world).length_max == 2
    world.amqp.vhosts.delete(world.amqp.vhosts.find("v"), world.now_ms)
    world.turn()
    assert [one.vhost for one in policies] == ["/", "/"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pattern": "("}, "pattern should be regular expression but is invalid: missing )"),
        ({"pattern": "a" * 5_000}, "pattern should have at most 4096 bytes"),
        ({"apply_to": "odd"}, "apply-to 'odd' unrecognised; should be 'queues', 'exchanges', 'classic_queues',"),
        ({"definition": {}}, "no policy provided"),
    ],
)
def test_what_may_not_be_is_refused_and_changes_nothing(world, change, reason):
    policy = Policy("/", "p", "a", {"max-length": 1})._replace(**change)
    with pytest.raises(InvalidPolicyError) as caught:
        world.amqp.vhosts.put_policy(policy)
    assert str(caught.value).startswith(reason)
    assert list(world.amqp.vhosts.policies) == []


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}$", "^(?!(a+)+$)(a|b)*c$"])
def test_a_hostile_pattern_takes_no_time(world, pattern):
    put(world, "p", pattern, {"max-length": 1})
    world.client().declare("a" * 200 + "b", durable=True)
    assert terms_of(world, "a" * 200 + "b").length_max == -1


@pytest.mark.parametrize("pattern", ["(((a{1,99}){1,99}){1,99}){1,99}", r"(a)\1", "a{1,999999}"])
def test_a_pattern_that_would_take_much_room_or_time_is_refused(world, pattern):
    with pytest.raises(InvalidPolicyError):
        put(world, "p", pattern, {"max-length": 1})
    assert list(world.amqp.vhosts.policies) == []
