from __future__ import annotations

import json

from gateway.settings.models import RocketmqSettings
from tests.support.rocketmq_door import DoorSite


def test_routes_name_the_address_that_the_peer_reached(site, peer):
    def address() -> str:
        said = json.loads(bytes(peer.ask(105, topic="TBW102").body))
        return said["brokerDatas"][0]["brokerAddrs"]["0"]

    assert address() == "127.0.0.1:10911"
    site.door.broker_port = 20911
    assert address() == "127.0.0.1:20911"
    peer.transport.local_address = ("::1", 9876)
    assert address() == "[::1]:20911"


def test_settings_name_the_address_in_routes(tmp_path):
    site = DoorSite(tmp_path / "d", RocketmqSettings(advertised_host="10.1.2.3", advertised_port=7))
    peer = site.connect()
    said = json.loads(bytes(peer.ask(106).body))
    assert said["brokerAddrTable"]["lmq"]["brokerAddrs"] == {"0": "10.1.2.3:7"}
    site.close()


def test_connections_are_counted_until_they_are_gone(site, peer):
    other = site.connect()
    counts = site.door.metrics
    assert (counts.connections, counts.connections_total) == (2, 2)
    other.close()
    assert (counts.connections, counts.connections_total) == (1, 2)
    assert set(site.door.handlers) == {peer.handler}
