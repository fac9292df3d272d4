"""Wills of clients that a plugin of amqtt let in, through a gateway that is killed with -9."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

PLUGIN = "tests.support.amqtt_plugins.FilePlugin"
OTHER = "tests.support.amqtt_plugins.OwnPlugin"
CONFIG = """
[auth]
mqtt_anonymous = true

[[auth.backends]]
kind = "amqtt"
name = "other"
plugins = {{ "{other}" = {{ suffix = "!", strangers = ["bob"] }} }}

[[auth.backends]]
kind = "amqtt"
cache_s = 0
plugins = {{ "{plugin}" = {{ topics = "{folder}/topics", asked = "{folder}/asked" }} }}
"""


class Site:
    """A gateway whose plugin goes by a file of topics."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "lmq.toml").write_text(CONFIG.format(plugin=PLUGIN, other=OTHER, folder=folder))
        self.gateway = GatewayProcess(folder / "data", "--config", str(folder / "lmq.toml"))

    def allow(self, *topics):
        (self.folder / "topics").write_text("\n".join(topics))

    def leave_wills(self, *names):
        """Have clients with wills for their own topics, which are not closed when the gateway is killed."""
        address = self.gateway.address("mqtt")
        login = {"user": b"bob", "password": b"secret"}
        return [MqttClient(address, name, will=(b"w/" + name, name, 1, False), **login) for name in names]

    def take(self, count):
        """Return what the watcher got, as soon as that is `count` messages."""
        bodies = []
        with MqttClient(self.gateway.address("mqtt"), b"watch") as watcher:
            while len(bodies) < count:
                packets = watcher.read(wait_s=5)
                assert packets, f"only {bodies}"
                for packet in packets:
                    if packet[0] >> 4 == 3:
                        delivery = mqtt.parse_publish(packet)
                        bodies.append(delivery.body)
                        watcher.send(mqtt.puback(delivery.packet_id))
        return sorted(bodies)


def test_will_is_published_after_a_kill_only_where_the_very_plugin_still_says_so(tmp_path):
    site = Site(tmp_path)
    site.allow("w/stays", "w/goes", "w/last")
    with site.gateway as gateway:
        with MqttClient(gateway.address("mqtt"), b"watch") as watcher:
            watcher.send(mqtt.subscribe(1, (b"w/#", 1), (b"mark", 1)))
            assert mqtt.suback(1, 1, 1) in watcher.read()
        clients = site.leave_wills(b"stays", b"goes", b"never")
        gateway.kill()
        (tmp_path / "asked").unlink()
        site.allow("w/stays", "w/last")  # while nobody runs
        gateway.start()
        assert site.take(1) == [b"stays"]
        asked = (tmp_path / "asked").read_text().split("\n")
        assert {"stays publish w/stays", "goes publish w/goes", "never publish w/never"} <= set(asked)
        for client in clients:
            client.sock.close()
        last = site.leave_wills(b"last")
        gateway.restart()
        with MqttClient(gateway.address("mqtt"), b"mark") as publisher:
            publisher.send(mqtt.publish(b"mark", b"mark", qos=1, packet_id=1))
            assert publisher.read() == [mqtt.puback(1)]
        assert site.take(2) == [b"last", b"mark"]  # no other will, now or from before
        last[0].sock.close()
