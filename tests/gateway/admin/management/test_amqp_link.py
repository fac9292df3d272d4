from __future__ import annotations

import asyncio

import pytest
from fastapi import HTTPException
from pamqp.commands import Basic, Queue

from gateway.admin.login import Caller
from gateway.admin.management import amqp_link
from gateway.admin.management.amqp_link import open_link
from gateway.auth.permissions import ALL
from tests.support.admin import make_view
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio
GUEST = Caller("127.0.0.1:1", "guest", ALL, ("administrator",), password="guest")


async def test_a_link_leaves_nothing_behind(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        async with open_link(make_view(gateway), GUEST, "/") as link:
            await link.call(Queue.Declare(0, "q", exclusive=True), Queue.DeclareOk)
            assert gateway.doors["amqp"].vhost.find("q") is not None
        await asyncio.sleep(0)
        assert gateway.doors["amqp"].vhost.find("q") is None
        assert not gateway.doors["amqp"].connections


async def test_somebody_that_does_not_come_in_is_told_so(tmp_path):
    stranger = Caller("127.0.0.1:1", "guest", ALL, (), password="wrong")
    async with running_gateway(tmp_path) as gateway:
        with pytest.raises(HTTPException) as raised:
            async with open_link(make_view(gateway), stranger, "/"):
                pass
        assert raised.value.status_code in {401, 503}
        with pytest.raises(HTTPException) as raised:
            async with open_link(make_view(gateway), GUEST, "none"):
                pass
        assert raised.value.status_code == 401


async def test_a_publisher_is_not_kept_waiting_for_room(tmp_path, monkeypatch):
    monkeypatch.setattr(amqp_link, "WAIT_S", 0.05)
    async with (
        running_gateway(tmp_path, free_bytes=lambda: 7) as gateway,
        open_link(make_view(gateway), GUEST, "/") as link,
    ):
        await link.call(Queue.Declare(0, "q"), Queue.DeclareOk)
        with pytest.raises(HTTPException) as raised:
            for _ in range(3):
                await link.publish(Basic.Publish(0, "", "q"), Basic.Properties(), b"x")
        assert raised.value.status_code == 503
        assert raised.value.detail["reason"] == "publishers are held back: the disk is low on room"


async def test_memory_that_is_low_is_told_as_that(tmp_path, monkeypatch):
    monkeypatch.setattr(amqp_link, "WAIT_S", 0.05)
    async with running_gateway(tmp_path) as gateway, open_link(make_view(gateway), GUEST, "/") as link:
        await link.call(Queue.Declare(0, "q"), Queue.DeclareOk)
        gateway.broker.room.note_memory(is_low=True, now_ms=0)
        with pytest.raises(HTTPException) as raised:
            for _ in range(3):
                await link.publish(Basic.Publish(0, "", "q"), Basic.Properties(), b"x")
        assert raised.value.detail["reason"] == "publishers are held back: memory is low"
        gateway.broker.room.note_memory(is_low=False, now_ms=0)
