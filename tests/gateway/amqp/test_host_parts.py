from __future__ import annotations


def test_all_virtual_hosts_have_the_same_parts(world):
    here, there = world.amqp.vhost, world.amqp.vhosts.make("other")
    assert here.stored is there.stored
    assert here.chores is there.chores is world.amqp.vhosts.chores
    assert here.delays is there.delays
