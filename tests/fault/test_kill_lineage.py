"""Where a message went is told after a kill with -9: what is sure, and in words what is not known."""

from __future__ import annotations

import threading
import time

import httpx
import paho.mqtt.client as mqtt

from tests.support.gateway import DOORS, GatewayProcess
from tests.support.pika_client import OF_KILLED_PEERS, PERSISTENT, connect

pytestmark = OF_KILLED_PEERS
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def _ask(gateway, path, **params):
    host, port = gateway.address("admin")
    url = f"http://{host}:{port}/api/lmq/{path}"
    answer = httpx.get(url, params=params, auth=("guest", "guest"), timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _fates(gateway, light_queue):
    items = _ask(gateway, "messages", queue=light_queue, at_ms=0)["items"]
    told = [_ask(gateway, f"messages/{item['id']}") for item in items]
    return [one["queues"][0]["readers"][0] for one in told], [item["id"] for item in items]


class _Device:
    """An MQTT client with a session, which acknowledges what comes."""

    def __init__(self, gateway):
        self.came, self.subscribed = threading.Semaphore(0), threading.Event()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "device", clean_session=False)
        self.client.on_message = lambda *_: self.came.release()
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        self.client.connect(*gateway.address("mqtt"))
        self.client.loop_start()

    def subscribe(self, topic_filter):
        """Subscribe; what was acknowledged before is known to the gateway then."""
        self.subscribed.clear()
        self.client.subscribe(topic_filter, 1)
        assert self.subscribed.wait(60)

    def take(self):
        """Wait for a message, and until its acknowledgement was taken."""
        assert self.came.acquire(timeout=60)
        self.subscribe("another/filter")

    def leave(self):
        """Go, as a client that says so."""
        self.client.disconnect()
        self.client.loop_stop()


def test_after_a_kill_it_is_told_what_became_of_messages_and_what_is_not_known(tmp_path):
    with GatewayProcess(tmp_path, doors=DOORS) as gateway:
        channel = connect(gateway, blocked_s=60).channel()
        channel.confirm_delivery()
        channel.queue_declare("jobs", durable=True, arguments=DEAD)
        channel.queue_declare("dead", durable=True)
        device = _Device(gateway)
        device.subscribe("plant/#")
        channel.basic_publish("amq.topic", "plant.1", b"had", PERSISTENT)
        device.take()
        device.leave()
        channel.basic_publish("amq.topic", "plant.2", b"waits", PERSISTENT)
        for body in (b"good", b"bad", b"waits"):
            channel.basic_publish("", "jobs", body, PERSISTENT)
        channel.basic_ack(channel.basic_get("jobs")[0].delivery_tag)
        channel.basic_reject(channel.basic_get("jobs")[0].delivery_tag, requeue=False)
        while _fates(gateway, "%LMQ%amqp%|2f%jobs")[0][1]["stage"] != "done":  # it is, once its letter is safe
            channel.connection.process_data_events(0.01)
        gateway.restart()

        (good, bad, waits), _ = _fates(gateway, "%LMQ%amqp%|2f%jobs")
        assert (good["outcome"], good["letter"]) == ("acknowledged", None)
        _, (letter,) = _fates(gateway, "%LMQ%amqp%|2f%dead")
        assert (bad["outcome"], bad["letter"]["id"], bad["letter"]["reason"]) == ("rejected", letter, "rejected")
        assert (waits["stage"], waits["outcome"]) == ("waits", None)
        (had, waiting), _ = _fates(gateway, "%LMQ%mqtt%plant%|h")
        assert (had["outcome"], had["note"]) == ("acknowledged", "filter plant/# at QoS 1")
        assert (waiting["stage"], waiting["outcome"]) == ("waits", None)

        device = _Device(gateway)  # what waited over the kill is known to the end
        device.take()
        channel = connect(gateway, blocked_s=60).channel()
        channel.basic_ack(channel.basic_get("jobs")[0].delivery_tag)
        channel.queue_declare("jobs", passive=True)
        assert _fates(gateway, "%LMQ%amqp%|2f%jobs")[0][2]["outcome"] == "acknowledged"
        assert _fates(gateway, "%LMQ%mqtt%plant%|h")[0][1]["outcome"] == "acknowledged"
        device.leave()


def test_after_a_kill_it_is_told_which_messages_nobody_acknowledged_that_have_no_letters(tmp_path):
    with GatewayProcess(tmp_path, doors=DOORS) as gateway:
        channel = connect(gateway, blocked_s=60).channel()
        channel.confirm_delivery()
        for name, arguments in (
            ("plain", {}),
            ("levels", {"x-max-priority": 2}),
            ("bytes", {"x-max-length-bytes": 99}),
        ):
            channel.queue_declare(name, durable=True, arguments=arguments)
            for body in (b"rejected", b"acknowledged", b"purged"):
                channel.basic_publish("", name, body, PERSISTENT)
        before = time.time() * 1_000
        for name in ("plain", "levels", "bytes"):
            channel.basic_reject(channel.basic_get(name)[0].delivery_tag, requeue=False)
            channel.basic_ack(channel.basic_get(name)[0].delivery_tag)
            channel.queue_purge(name)
        after = time.time() * 1_000
        gateway.restart()
        for name in ("plain", "levels", "bytes"):
            told, _ = _fates(gateway, f"%LMQ%amqp%|2f%{name}")
            assert [each["outcome"] for each in told] == ["rejected", "acknowledged", "purged"]
            assert before - 10 < told[0]["from_ms"] == told[0]["until_ms"] < after + 10
