"""The console in Chromium, every page and a walk through them: `make browser` runs these."""

from __future__ import annotations

import asyncio
import shutil
import subprocess

import aio_pika
import aiomqtt
import httpx
import pytest

from tests.support.elsewhere import beside_ci, build
from tests.support.gateway import GatewayProcess

pytestmark = [pytest.mark.slow, pytest.mark.clients, beside_ci]

MARKUP = "<img src=x onerror=alert(1)>"
WALK_S = 180


async def fill(gateway):
    """Make something of each kind."""
    host, port = gateway.address("amqp")
    connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
    channel = await connection.channel()
    readings = await channel.declare_queue("readings", durable=True)
    await readings.bind("amq.topic", "plant.#")
    await channel.declare_queue("graves", durable=True)
    dying = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}
    jobs = await channel.declare_queue("jobs", durable=True, arguments=dying)
    await channel.default_exchange.publish(aio_pika.Message(b"a job"), "jobs")
    await (await jobs.get(timeout=5)).reject(requeue=False)
    host, port = gateway.address("mqtt")
    async with aiomqtt.Client(host, port, identifier="away", clean_session=False) as away:
        await away.subscribe("plant/#", qos=1)
    async with aiomqtt.Client(host, port, identifier=MARKUP, clean_session=False) as hostile:
        await hostile.subscribe(MARKUP)
    async with aiomqtt.Client(host, port, identifier="dev-7") as device:
        for _ in range(5):
            await device.publish("plant/1/temp", b"21.5", qos=1, retain=True)
        await device.publish("$delayed/600/later/1", b"not yet", qos=1)
    await connection.close()
    host, port = gateway.address("admin")
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}/api", auth=("guest", "guest")) as client:
        for path, said in (
            ("vhosts/v", {}),
            ("queues/v/hers", {}),
            ("users/ann", {"password": "ann", "tags": "management"}),
            ("permissions/v/ann", {"configure": ".*", "write": ".*", "read": ".*"}),
            ("permissions/%2F/ann", {"configure": "^mqtt", "write": "^mqtt", "read": "^(mqtt|amq.topic)"}),
        ):
            (await client.put(f"/{path}", json=said)).raise_for_status()
    host, port = gateway.address("mqtt")
    async with aiomqtt.Client(
        host, port, identifier="of ann", username="ann", password="ann", clean_session=False
    ) as hers:
        await hers.subscribe("plant/#", qos=1)


def find_chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    return found


def test_every_page_shows_and_what_an_operator_does_works(tmp_path):
    chromium = find_chromium()
    folder = build("npm", "console", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    with GatewayProcess(tmp_path) as gateway:
        asyncio.run(fill(gateway))
        host, port = gateway.address("admin")
        command = ["node", "walk.mjs", f"http://{host}:{port}", chromium]
        walk = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WALK_S, check=False)
        lines = walk.stdout.splitlines()
        assert walk.returncode == 0, walk.stderr
        wrong = [line for line in lines if line.startswith("wrong")]
        assert not wrong, "\n".join(wrong)
        (paint_ms,) = (int(line.split()[3]) for line in lines if line.startswith("first paint"))
        assert paint_ms < 1_000
        assert int(lines[-1].removeprefix("ok ")) >= 2 * 10
