"""How fast connections come, and what they share."""

from __future__ import annotations

from gateway.net.paces import AllPaces, ListenerRates
from gateway.pacing import ALONE
from gateway.settings.limits import AddressLimitsSettings


class Site:
    """Two doors, and the time."""

    def __init__(self, *, connects_rate=0, **limits):
        self.now_ms = 0
        self.paces = AllPaces(AddressLimitsSettings(**limits), lambda: self.now_ms)
        self.amqp = self.paces.of("amqp", connects_rate)
        self.rocketmq = self.paces.of("rocketmq", 0)


def test_one_address_comes_so_often_a_second_at_all_doors_together_and_others_as_well():
    site = Site()
    site.paces.use(AddressLimitsSettings(connects_rate=2), {"amqp": 0, "rocketmq": 0})
    asked = [door.refusal(host) for door, host in ((site.amqp, "a"), (site.rocketmq, "a"), (site.amqp, "a"))]
    assert asked == ["", "", "address_connects_rate"]
    assert site.amqp.refusal("b") == site.amqp.refusal("") == ""
    site.now_ms = 500
    assert [site.amqp.refusal("a"), site.amqp.refusal("a")] == ["", "address_connects_rate"]


def test_of_ipv6_the_first_64_bits_are_one_address_and_some_networks_are_exempt():
    site = Site()
    site.paces.use(AddressLimitsSettings(connects_rate=1, exempt=("10.0.0.0/8",)), {"amqp": 0, "rocketmq": 0})
    assert [site.amqp.refusal(host) for host in ("2001:db8::1", "2001:db8::2")] == ["", "address_connects_rate"]
    assert [site.amqp.refusal("10.1.1.1") for _ in range(3)] == [""] * 3


def test_a_door_lets_so_many_in_and_one_of_its_addresses_fewer():
    site = Site(connects_rate=3)
    here = site.amqp.at(ListenerRates(connects=1))
    assert [here.refusal("a"), here.refusal("b")] == ["", "listener_connects_rate"]
    assert [site.amqp.refusal("c") for _ in range(3)] == ["", "", "connects_rate"]
    assert site.rocketmq.refusal("c") == ""
    site.paces.use(AddressLimitsSettings(), {"amqp": 0, "rocketmq": 0})
    assert site.amqp.refusal("c") == ""


def test_a_connection_whose_host_is_told_later_counts_to_it_then():
    site = Site()
    site.paces.use(AddressLimitsSettings(connects_rate=1), {"amqp": 0, "rocketmq": 0})
    assert [site.amqp.refusal("") for _ in range(3)] == [""] * 3
    assert [site.amqp.host_refusal("a"), site.amqp.host_refusal("a")] == ["", "address_connects_rate"]


def test_connections_share_the_rates_of_their_address_and_of_ours():
    site = Site(messages_rate=5, bytes_out_rate=7)
    here = site.amqp.at(ListenerRates(messages=9))
    found = here.find("192.0.2.1")
    assert [[rate.per_s for rate in rates.messages] for rates in found.incoming] == [[5], [9]]
    assert [[rate.per_s for rate in rates.sizes] for rates in found.outgoing] == [[7], []]
    again = site.rocketmq.find("192.0.2.1")
    assert again.incoming[0] is found.incoming[0]
    assert again.outgoing[0] is found.outgoing[0]
    assert site.rocketmq.find("192.0.2.2").incoming[0] is not found.incoming[0]
    assert here.find("").incoming == here.find("192.0.2.9").incoming[1:] == found.incoming[1:]
    assert site.rocketmq.find("") is ALONE
