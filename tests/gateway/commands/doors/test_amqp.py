from __future__ import annotations

import pytest

from gateway.commands.doors.amqp import AmqpLink
from gateway.commands.doors.place import Door, Place, Tls
from gateway.commands.doors.traffic import LinkError, Outgoing
from gateway.settings.models import AmqpSettings
from tests.support.admin import declare
from tests.support.certificates import authority_file, server_files
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio


def place(address, *, user=None, password=None, vhost="/", tls=None):
    return Place(Door.AMQP, *address, user, password, vhost, None, tls)


async def test_whether_a_queue_gets_it_is_told_and_without_a_confirm_it_is_not(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        (queue,) = declare(gateway, "jobs")
        async with AmqpLink(place(gateway.listening["amqp"])) as link:
            assert await link.publish(Outgoing("jobs", b"x", expires_s=60, content_type="a/b")) is True
            assert await link.publish(Outgoing("none", b"x")) is False
            assert await link.publish(Outgoing("none", b"x", qos=0)) is None
        assert queue.pop.ready_count == 1


async def test_logins_virtual_hosts_and_servers_that_are_not_there(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        at = gateway.listening["amqp"]
        for wrong, words, code in (
            (place(("127.0.0.1", 1)), r"cannot connect to amqp 127\.0\.0\.1:1: ", 6),
            (place(at, user="bob", password="x"), "ACCESS_REFUSED", 5),
            (place(at, vhost="none"), "refuses the virtual host 'none'", 5),
        ):
            with pytest.raises(LinkError, match=words) as failed:
                async with AmqpLink(wrong):
                    pass
            assert failed.value.code == code


async def test_tls_asks_for_a_certificate_that_is_trusted(tmp_path):
    certificate, key = server_files()
    listen = [{"address": ANY_PORT, "tls": {"certificate": str(certificate), "key": str(key)}}]
    async with running_gateway(tmp_path, amqp=AmqpSettings(listen=listen)) as gateway:
        at = gateway.listening["amqps"]
        async with AmqpLink(place(at, tls=Tls(authority_file(), None, None, insecure=False))) as link:
            assert await link.publish(Outgoing("none", b"")) is False
        with pytest.raises(LinkError, match=r"(?i)certificate"):
            async with AmqpLink(place(at, tls=Tls(None, None, None, insecure=False))):
                pass
        with pytest.raises(LinkError, match=r"it hangs up and says nothing of AMQP; it may speak TLS alone \(--tls\)"):
            async with AmqpLink(place(at)):
                pass
