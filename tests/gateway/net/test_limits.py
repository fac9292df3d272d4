from __future__ import annotations

from gateway.net.descriptors import Capacity
from gateway.net.limits import TURNED_MAX, AddressConnections, ConnectionLimits, ListenerLimits
from gateway.settings.limits import AddressLimitsSettings


def test_no_limit_counts_only():
    limits = ConnectionLimits()
    assert [limits.refusal("a") for _ in range(3)] == ["", "", ""]
    limits.release("a")
    assert limits.count == 2


def test_connections_over_the_maximum_are_refused_until_one_ends():
    limits = ConnectionLimits(count_max=2)
    assert [limits.refusal(host) for host in "abc"] == ["", "", "connections_max"]
    limits.release("a")
    assert limits.refusal("c") == ""


def test_one_address_cannot_take_all_places():
    limits = ConnectionLimits(host_count_max=1)
    assert [limits.refusal(host) for host in "aab"] == ["", "host_connections_max", ""]
    limits.release("a")
    assert limits.refusal("a") == ""


def test_maxima_that_are_set_later_count_who_is_in_already():
    limits = ConnectionLimits()
    assert [limits.refusal(host) for host in "aab"] == ["", "", ""]
    limits.reload(0, 2)
    assert [limits.refusal(host) for host in "ab"] == ["host_connections_max", ""]
    limits.reload(4, 0)
    assert limits.refusal("c") == "connections_max"
    limits.reload(0, 0)
    assert limits.refusal("a") == ""


def test_a_connection_whose_host_is_told_later_counts_to_it_from_then_on():
    limits = ConnectionLimits(host_count_max=1)
    assert [limits.refusal("") for _ in range(3)] == ["", "", ""]
    assert [limits.host_refusal(host) for host in "aab"] == ["", "host_connections_max", ""]
    limits.release("")
    limits.release("a")
    assert limits.count == 1
    assert limits.host_refusal("a") == ""


def test_of_ipv6_the_first_64_bits_are_one_address():
    limits = ConnectionLimits(host_count_max=1)
    assert [limits.refusal(host) for host in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")] == [
        "",
        "host_connections_max",
        "",
    ]
    limits.release("2001:db8::1")
    assert limits.refusal("2001:db8::3") == ""


def test_one_address_has_so_many_at_all_doors_together_and_some_networks_any_number():
    addresses = AddressConnections(AddressLimitsSettings(connections_max=2, exempt=("10.0.0.0/8",)))
    mqtt, amqp = ConnectionLimits(addresses=addresses), ConnectionLimits(addresses=addresses)
    here = ListenerLimits(5, amqp)
    assert [mqtt.refusal("192.0.2.1"), here.refusal("192.0.2.1"), mqtt.refusal("192.0.2.1")] == [
        "",
        "",
        "address_connections_max",
    ]
    assert here.refusal("") == ""  # a proxy will tell its address
    assert here.host_refusal("192.0.2.1") == "address_connections_max"
    assert (mqtt.count, amqp.count, here.count) == (1, 2, 2)
    assert mqtt.refusal("192.0.2.2") == amqp.refusal("::ffff:192.0.2.2") == ""
    assert amqp.refusal("192.0.2.2") == "address_connections_max"  # the same, as an IPv6 socket tells it
    assert [mqtt.refusal("10.1.1.1") for _ in range(3)] == [""] * 3
    mqtt.release("192.0.2.1")
    assert here.refusal("192.0.2.1") == ""
    addresses.use(AddressLimitsSettings())
    assert mqtt.refusal("192.0.2.1") == ""
    addresses.use(AddressLimitsSettings(connections_max=3))  # those that came meanwhile count
    assert mqtt.refusal("192.0.2.1") == "address_connections_max"


def test_address_has_a_maximum_of_its_own_beside_the_doors():
    of_door = ConnectionLimits(3)
    own = ListenerLimits(2, of_door)
    assert [own.refusal("a"), own.refusal("b"), own.refusal("a")] == ["", "", "listener_connections_max"]
    assert (own.count, of_door.count) == (2, 2)
    assert of_door.refusal("c") == ""
    own.release("a")
    assert (own.refusal("a"), own.refusal("d"), of_door.count) == ("", "listener_connections_max", 3)
    own.release("b")
    assert of_door.refusal("e") == ""
    assert (own.refusal("b"), own.count) == ("connections_max", 1)


def test_some_that_are_refused_may_stay_until_they_are_told():
    capacity = Capacity(1_000, call_later=lambda *_: None, is_left=lambda: True)
    limits = ConnectionLimits(count_max=1, capacity=capacity)
    own = ListenerLimits(1, limits)
    assert own.refusal("a") == ""
    assert own.refusal("b") == "listener_connections_max"
    assert [own.enter_turned() for _ in range(TURNED_MAX + 1)] == [True] * TURNED_MAX + [False]
    assert (limits.count, capacity.count) == (1, TURNED_MAX + 1)
    own.release_turned()
    assert limits.enter_turned()
    for _ in range(TURNED_MAX):
        own.release_turned()
    own.release("a")
    assert (limits.turned_count, limits.count, capacity.count) == (0, 0, 0)
