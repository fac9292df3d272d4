"""A copy of the data folder serves, made in each of the ways that the operators' manual calls safe."""

from __future__ import annotations

import shutil
import signal
import threading

import aio_pika
import pika
import pytest

from tests.support.gateway import GatewayProcess, running_gateway

BODIES = [b"%d" % number for number in range(60)]


async def _connect(gateway):
    return await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"]))


@pytest.mark.asyncio
async def test_a_copy_of_a_stopped_folder_has_it_all_and_the_original_goes_on(tmp_path):
    async with running_gateway(tmp_path / "data") as gateway:
        connection = await _connect(gateway)
        channel = await connection.channel()
        await channel.declare_queue("work", durable=True)
        for body in (b"done", b"left"):
            await channel.default_exchange.publish(aio_pika.Message(body, delivery_mode=2), "work")
        first = await (await channel.get_queue("work")).get()
        await first.ack()
        await connection.close()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    for folder in ("copy", "data"):
        async with running_gateway(tmp_path / folder) as gateway:
            connection = await _connect(gateway)
            queue = await (await connection.channel()).get_queue("work")
            assert (await queue.get()).body == b"left"
            assert await queue.get(fail=False) is None
            await connection.close()


class Publisher:
    """Publishes with confirms until it is told to stop; `confirmed` is what the gateway took."""

    def __init__(self, port):
        self.confirmed = 0
        self.reached = threading.Event()
        self._is_over = False
        self._connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        self._channel = self._connection.channel()
        self._channel.queue_declare("work", durable=True)
        self._channel.confirm_delivery()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        persistent = pika.BasicProperties(delivery_mode=2)
        for body in BODIES:
            if self._is_over:
                break
            self._channel.basic_publish("", "work", body, persistent)
            self.confirmed += 1
            if self.confirmed == len(BODIES) // 3:
                self.reached.set()

    def stop(self):
        self._is_over = True
        self._thread.join(10)
        self._connection.close()


@pytest.mark.slow
def test_a_copy_of_a_halted_gateway_has_all_that_it_confirmed(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        publisher = Publisher(gateway.port("amqp"))
        assert publisher.reached.wait(10)
        gateway.process.send_signal(signal.SIGSTOP)
        confirmed = publisher.confirmed
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        gateway.process.send_signal(signal.SIGCONT)
        publisher.stop()
        assert publisher.confirmed >= confirmed
    with GatewayProcess(tmp_path / "copy") as restored:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", restored.port("amqp")))
        channel = connection.channel()
        found = list(iter(lambda: channel.basic_get("work", auto_ack=True)[2], None))
        connection.close()
    assert len(found) >= confirmed
    assert found == BODIES[: len(found)]
