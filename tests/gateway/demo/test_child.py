from __future__ import annotations

import asyncio

import pytest

from gateway.demo.child import GatewayFailedError, start_gateway

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
async def test_a_gateway_says_where_its_doors_are_and_stops_cleanly(tmp_path):
    async with start_gateway(tmp_path / "data", tmp_path / "gateway.log") as gateway:
        assert {"mqtt", "amqp", "namesrv", "broker", "admin"} <= gateway.addresses.keys()
        _, writer = await asyncio.open_connection(*gateway.addresses["mqtt"])
        writer.close()
        assert await gateway.stop() == 0


@pytest.mark.asyncio
async def test_a_gateway_that_does_not_come_up_names_its_log(tmp_path):
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(GatewayFailedError, match=r"before it was ready; see .*gateway\.log"):
        async with start_gateway(tmp_path / "data", tmp_path / "gateway.log"):
            pass
    assert (tmp_path / "gateway.log").read_text()


@pytest.mark.asyncio
async def test_a_gateway_ends_with_the_demo_that_fails(tmp_path):
    running = None

    async def fail():
        nonlocal running
        async with start_gateway(tmp_path / "data", tmp_path / "gateway.log") as running:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*running.addresses["mqtt"])
