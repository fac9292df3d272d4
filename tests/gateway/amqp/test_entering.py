from __future__ import annotations

import pytest
from pamqp.commands import Channel, Connection

from gateway.amqp.host_profile import CONNECTIONS_MAX

# The texts of RabbitMQ 3.10.8.


@pytest.mark.parametrize("name", ["none", "", "é"])
def test_virtual_host_that_is_not_there_is_not_found(world, name):
    close = world.log_in(vhost=name).opening[-1]
    assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 40)
    assert close.reply_text == f"NOT_ALLOWED - vhost {name} not found"


def test_there_are_as_many_connections_as_there_may_be(world):
    vhost = world.amqp.vhosts.make("v1")
    vhost.profile = vhost.profile.with_limit(CONNECTIONS_MAX, 1)
    first = world.client(vhost="v1")
    close = world.log_in(vhost="v1").opening[-1]
    assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 40)
    reason = "access to vhost 'v1' refused for user 'guest': connection limit (1) is reached"
    assert close.reply_text == f"NOT_ALLOWED - {reason}"
    assert isinstance(first.call(Channel.Open(), 2), Channel.OpenOk)
    first.transport.is_closed = True  # its end is told later
    back = world.log_in(vhost="v1")
    assert isinstance(back.opening[-1], Connection.OpenOk)
    assert world.log_in(vhost="v1").opening[-1].reply_code == 530
    first.vanish()
    assert world.log_in(vhost="v1").opening[-1].reply_code == 530
    back.vanish()
    assert isinstance(world.log_in(vhost="v1").opening[-1], Connection.OpenOk)
