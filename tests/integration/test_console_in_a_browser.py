"""The console in Chromium, every page and a walk through them: `make browser` runs these."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import quote

import aio_pika
import aiomqtt
import httpx
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from lmq import ConsumeStatus, NotFoundError, Producer, PullConsumer, PushConsumer
from tests.support.elsewhere import beside_ci, build
from tests.support.gateway import DOORS, GatewayProcess

pytestmark = [pytest.mark.slow, pytest.mark.clients, beside_ci]

MARKUP = "<img src=x onerror=alert(1)>"
LONG = "x" * 240
BIG = '{"big":12345678901234567890,"list":[1,2]}'
DEEP = 8_000  # arrays in each other
WALK_S = 900


async def fill(gateway):
    """Make something of each kind."""
    host, port = gateway.address("amqp")
    connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
    channel = await connection.channel()
    readings = await channel.declare_queue("readings", durable=True)
    await readings.bind("amq.topic", "plant.#")
    watched = await channel.declare_queue("watched", durable=True)
    await channel.declare_queue("graves", durable=True)
    dying = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}
    jobs = await channel.declare_queue("jobs", durable=True, arguments=dying)
    await channel.default_exchange.publish(aio_pika.Message(b"a job"), "jobs")
    for _ in range(50):
        await channel.default_exchange.publish(aio_pika.Message(b"not seen to"), watched.name)
    await (await jobs.get(timeout=20)).reject(requeue=False)
    host, port = gateway.address("mqtt")
    async with aiomqtt.Client(host, port, identifier="away", clean_session=False) as away:
        await away.subscribe("plant/#", qos=1)
    async with aiomqtt.Client(host, port, identifier=MARKUP, clean_session=False) as hostile:
        await hostile.subscribe(MARKUP)
    for number in range(6):
        async with aiomqtt.Client(host, port, identifier=f"many-{number}", clean_session=False) as one:
            await one.subscribe([("many/#", 1), ("$share/team/many/+", 1)])
    async with aiomqtt.Client(host, port, identifier="dev-7") as device:
        for _ in range(5):
            await device.publish("plant/1/temp", b"21.5", qos=1, retain=True)
        await device.publish("$delayed/600/later/1", b"not yet", qos=1)
    await connection.close()
    host, port = gateway.address("admin")
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}/api", auth=("guest", "guest")) as client:
        for path, said in (
            ("policies/%2F/ttl", {"pattern": "^graves$", "definition": {"max-length": 1_000}, "apply-to": "queues"}),
            ("vhosts/v", {}),
            ("queues/v/hers", {}),
            ("queues/v/loaded", {}),
            ("queues/v/graves", {}),
            ("queues/v/jobs", {"arguments": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}}),
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
    await fill_hostile(gateway)
    await fill_rocketmq(gateway)


async def fill_hostile(gateway):
    """Make things with markup and long texts for names, messages of bytes, and other exchanges."""
    host, port = gateway.address("admin")
    name = quote(MARKUP, safe="")
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}/api", auth=("guest", "guest")) as client:
        for path, said in (
            (f"queues/%2F/{name}", {"durable": True}),
            (f"queues/%2F/{LONG}", {"durable": True}),
            ("queues/%2F/bodies", {"durable": True}),
            ("queues/%2F/fives", {"durable": True}),
            ("queues/%2F/unrouted", {"durable": True}),
            (f"exchanges/%2F/{name}", {"type": "topic"}),
            ("exchanges/%2F/by-headers", {"type": "headers"}),
            ("exchanges/%2F/alternate", {"type": "fanout"}),
            ("exchanges/%2F/by-alternate", {"type": "direct", "arguments": {"alternate-exchange": "alternate"}}),
            ("exchanges/v/only-here", {"type": "fanout"}),
            (f"vhosts/{name}", {}),
            (f"users/{name}", {"password": "x", "tags": ""}),
            (f"policies/%2F/{name}", {"pattern": "^none$", "definition": {"max-length": 1}}),
        ):
            (await client.put(f"/{path}", json=said)).raise_for_status()
        (await client.post("/bindings/v/e/only-here/q/hers", json={})).raise_for_status()
        sent = {"properties": {}, "routing_key": "k", "payload": "x", "payload_encoding": "string"}
        (await client.post("/exchanges/v/only-here/publish", json=sent)).raise_for_status()
        for path, said in (
            (f"e/{name}/q/{name}", {"routing_key": MARKUP}),
            ("e/by-headers/q/jobs", {"arguments": {"x-match": "all", "kind": "job"}}),
            ("e/alternate/q/unrouted", {}),
            ("e/amq.topic/q/fives", {"routing_key": "five.#"}),
        ):
            (await client.post(f"/bindings/%2F/{path}", json=said)).raise_for_status()
        for exchange, key, body, properties in (
            (name, MARKUP, MARKUP, {"headers": {MARKUP: MARKUP}}),
            ("amq.default", LONG, "long", {}),
            ("amq.default", "bodies", BIG, {"content_type": "application/json", "headers": {"kind": "job"}}),
            ("amq.default", "bodies", b"\x00\xffAB", {}),
            ("amq.default", "bodies", "", {}),
            ("amq.default", "bodies", "[" * DEEP + "]" * DEEP, {}),
        ):
            is_text = isinstance(body, str)
            sent = {
                "properties": properties,
                "routing_key": key,
                "payload": body if is_text else base64.b64encode(body).decode(),
                "payload_encoding": "string" if is_text else "base64",
            }
            (await client.post(f"/exchanges/%2F/{exchange}/publish", json=sent)).raise_for_status()
    host, port = gateway.address("mqtt")
    async with aiomqtt.Client(host, port, identifier=LONG, clean_session=False) as long:
        await long.subscribe([(f"{LONG}/#", 1), (f"{MARKUP}/#", 1)])
    carried = Properties(PacketTypes.PUBLISH)
    carried.UserProperty = [("k", "first"), ("k", "second")]
    carried.ResponseTopic = "re/1"
    carried.CorrelationData = b"\x00\x01\xff"
    async with aiomqtt.Client(host, port, protocol=aiomqtt.ProtocolVersion.V5) as five:
        await five.publish("five/1", b"5", qos=1, properties=carried)
        await five.publish(f"{MARKUP}/a", MARKUP.encode(), qos=1, retain=True)
        await five.publish(f"{LONG}/a", b"long", qos=1)


async def fill_rocketmq(gateway):
    """Have a group with a place on a topic, and one with a dead letter."""
    nameserver = "{}:{}".format(*gateway.address("namesrv"))
    async with Producer(nameserver) as producer, PullConsumer(nameserver, "billing") as consumer:
        await producer.send("Orders", b"an order", keys="o-1")
        for queue in await consumer.queues("Orders"):
            await consumer.commit(queue, 0)
        async with PushConsumer(nameserver, "shipping", give_up, consume_from="first") as shipping:
            shipping.subscribe("Orders")
            async with asyncio.timeout(60):
                while not await has_letter(consumer, "%DLQ%shipping"):
                    await asyncio.sleep(0.1)


async def give_up(_messages, context):
    """Have a message be a dead letter at once."""
    context.delay_level = -1
    return ConsumeStatus.LATER


async def has_letter(consumer, topic):
    """Return whether a letter came to a topic, which is made then."""
    try:
        return bool((await consumer.pull(topic, 0)).messages)
    except NotFoundError:
        return False


async def keep(_message):
    """Neither acknowledge it nor give it back."""


async def stay(gateway, is_there, is_over):
    """Keep a worker that holds what it was given, and a connection that nobody needs."""
    host, port = gateway.address("amqp")
    login = f"amqp://guest:guest@{host}:{port}/"
    worker = await aio_pika.connect(login)
    idle = await aio_pika.connect(f"{login}?name=to+be+closed")
    channel = await worker.channel()
    await channel.set_qos(1)
    queue = await channel.get_queue("readings")
    await queue.consume(keep, consumer_tag="a worker")
    unlimited = await (await worker.channel()).get_queue("unrouted")
    await unlimited.consume(keep, consumer_tag="a greedy one")
    is_there.set()
    await asyncio.to_thread(is_over.wait)
    await worker.close()
    await idle.close()


@contextmanager
def company(gateway):
    """Have `stay` go on meanwhile."""
    is_there, is_over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(stay(gateway, is_there, is_over)))
    thread.start()
    try:
        assert is_there.wait(30)
        yield
    finally:
        is_over.set()
        thread.join()


def find_chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    return found


def build_walk():
    return build("npm", "console", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")


def run(folder, *command):
    """Run a walk, and return its lines; whatever was wrong fails the test."""
    walk = subprocess.run(["node", *command], cwd=folder, capture_output=True, text=True, timeout=WALK_S, check=False)
    lines = walk.stdout.splitlines()
    assert walk.returncode == 0, walk.stderr
    wrong = [line for line in lines if line.startswith("wrong")]
    assert not wrong, "\n".join(wrong)
    return lines


async def retain(broker):
    """Have a retained message at a broker, which a bridge gets at once."""
    host, port = broker.address("mqtt")
    async with aiomqtt.Client(host, port) as client:
        await client.publish("back/1", b"from the other side", qos=1, retain=True)


def write_bridges(path, other):
    """Write settings with one bridge to another broker, and one to nobody; return the options that name them."""
    address = "{}:{}".format(*other.address("mqtt"))
    topics = '[{filter = "over/#"}, {filter = "back/#", direction = "in"}]'
    site = f'[bridges.site]\naddress = "{address}"\ntopics = {topics}\n'
    path.write_text(f'{site}[bridges.gone]\naddress = "127.0.0.1:1"\ntopics = [{{filter = "none/#"}}]\n')
    return "--config", str(path)


@pytest.mark.timeout(WALK_S + 60)
def test_every_page_shows_and_what_an_operator_does_works(tmp_path):
    chromium = find_chromium()
    folder = build_walk()
    report = tmp_path / "report"
    report.mkdir()
    (report / "index.html").write_text("<p>Fan-out of yesterday")
    env = {"LMQ_ADMIN__FAN_OUT_REPORT": str(report)}
    with (
        GatewayProcess(tmp_path / "other") as other,
        ExitStack() as gateways,
    ):
        asyncio.run(retain(other))
        options = write_bridges(tmp_path / "lmq.toml", other)
        gateway = gateways.enter_context(GatewayProcess(tmp_path / "data", *options, env=env, doors=DOORS))
        asyncio.run(fill(gateway))
        host, port = gateway.address("admin")
        command = ["walk.mjs", f"http://{host}:{port}", chromium, *map(str, gateway.address("mqtt"))]
        with company(gateway):
            lines = run(folder, *command)
        (paint_ms,) = (int(line.split()[3]) for line in lines if line.startswith("first paint"))
        assert paint_ms < 1_000
        assert int(lines[-1].removeprefix("ok ")) >= 4 * 25


async def fill_times(gateway):
    """Make the queues that are looked into by the moment."""
    host, port = gateway.address("amqp")
    connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
    channel = await connection.channel()
    few, gone, *_ = [await channel.declare_queue(name, durable=True) for name in ("few", "gone", "empty", "many")]
    publish = channel.default_exchange.publish
    await asyncio.gather(*(publish(aio_pika.Message(bytes(2_000)), gone.name) for _ in range(700)))
    await gone.purge()
    await asyncio.gather(*(publish(aio_pika.Message(b"one of many"), "many") for _ in range(1_500)))
    for i in range(5):  # each in a second of its own, as the fields of browsers have no smaller steps
        second = int(time.time())
        await publish(aio_pika.Message(b"few %d" % i), few.name)
        while int(time.time()) <= second:
            await asyncio.sleep(0.02)
    await connection.close()
    host, port = gateway.address("admin")
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}/api", auth=("guest", "guest")) as client:
        (await client.post("/lmq/retention", json={})).raise_for_status()
        said = (await client.get("/queues/%2F/gone")).raise_for_status().json()["lmq"]
    assert 0 < said["first_offset"] < said["next_offset"]


@pytest.mark.timeout(WALK_S + 60)
def test_messages_are_found_and_published_again_by_the_moment_in_each_time_zone(tmp_path):
    chromium = find_chromium()
    folder = build_walk()
    small = {"LMQ_STORE__SEGMENT_BYTES": "65536", "LMQ_STORE__RETENTION__BYTES_MAX": "1048576"}
    with GatewayProcess(tmp_path / "data", env=small, doors=DOORS) as gateway:
        asyncio.run(fill_times(gateway))
        host, port = gateway.address("admin")
        assert run(folder, "times.mjs", f"http://{host}:{port}", chromium)[-1] == "ok 6"
