"""Clients for tests of the admin API: small ones, in the test's own loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager


def _text(value):
    return len(value.encode()).to_bytes(2, "big") + value.encode()


def _packet(kind, content):
    assert len(content) < 128
    return bytes((kind, len(content))) + content


@asynccontextmanager
async def connect(gateway, client_id):
    """Yield reader and writer of an MQTT 3.1.1 client with a persistent session."""
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
    writer.write(_packet(0x10, _text("MQTT") + b"\x04\x00\x00\x00" + _text(client_id)))
    assert (await reader.readexactly(4))[::3] == b"\x20\x00"
    try:
        yield reader, writer
    finally:
        writer.write(b"\xe0\x00")
        await writer.drain()
        writer.close()
        while any(session.outlet for session in gateway.doors["mqtt"].sessions):
            await asyncio.sleep(0)


@asynccontextmanager
async def subscribe(gateway, client_id, *filters):
    """Yield the reader of a client that is subscribed at QoS 1; its session stays."""
    async with connect(gateway, client_id) as (reader, writer):
        content = b"".join(_text(one) + b"\x01" for one in filters)
        writer.write(_packet(0x82, b"\x00\x01" + content))
        await reader.readexactly(4 + len(filters))
        yield reader


async def until_amqp_is_left(gateway):
    """Wait until all AMQP connections are gone: their end is read after the answer to their close."""
    async with asyncio.timeout(60):
        while gateway.doors["amqp"].connections:
            await asyncio.sleep(0.001)


async def retain(gateway, messages):
    """Publish retained messages."""
    async with connect(gateway, "retaining") as (reader, writer):
        for number, (topic, body) in enumerate(messages.items(), 1):
            writer.write(_packet(0x33, _text(topic) + number.to_bytes(2, "big") + body))
            assert (await reader.readexactly(4))[0] == 0x40


async def publish(client, exchange, key, body, properties=None):
    """Publish through the admin API."""
    wanted = {"routing_key": key, "payload": body, "payload_encoding": "string", "properties": properties or {}}
    answer = await client.post(f"/api/exchanges/%2F/{exchange}/publish", json=wanted)
    assert answer.json()["routed"], answer.text


async def add_user(client, name, tags, *, read=None):
    """Make a user with its name as its password; without `read` it has no permission in any virtual host."""
    wanted = {"password": name, "tags": tags}
    assert (await client.put(f"/api/users/{name}", json=wanted)).status_code == 201
    if read is not None:
        rights = {"configure": "", "write": "", "read": read}
        assert (await client.put(f"/api/permissions/%2F/{name}", json=rights)).status_code == 201
