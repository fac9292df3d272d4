from __future__ import annotations

import logging

import pytest

from gateway.net.limits import ConnectionLimits
from gateway.net.paces import ADDRESS_FAST, LISTENER_FAST, AllPaces, ListenerRates
from gateway.settings.limits import AddressLimitsSettings
from tests.support.connections import Site

pytestmark = pytest.mark.asyncio


async def test_who_is_turned_away_is_counted_by_reason_and_named_in_one_line(caplog):
    caplog.set_level(logging.WARNING, "gateway.net.endpoint")
    site = Site(ConnectionLimits(count_max=2, host_count_max=1))
    asked = [site.endpoint.find_refusal(host) for host in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")]
    assert asked == ["", "host_connections_max", "", "connections_max"]
    assert not site.endpoint.may_tell()  # nobody does at this door
    assert site.refused == {"host_connections_max": 1, "connections_max": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "refused connection door=test peer=192.0.2.1 reason=host_connections_max",
        "refused connection door=test peer=192.0.2.3 reason=connections_max",
    ]


async def test_who_comes_too_fast_is_turned_away_before_anything_is_counted():
    site = Site(ConnectionLimits())
    paces = AllPaces(AddressLimitsSettings(connects_rate=1), site.clock.now_ms).of("test", 0)
    site.endpoint.paces = paces
    own = site.endpoint.at(site.endpoint.connect, 0, ListenerRates(connects=2))
    hosts = ("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")
    assert [own.find_refusal(host) for host in hosts] == ["", ADDRESS_FAST, "", LISTENER_FAST]
    assert site.refused == {ADDRESS_FAST: 1, LISTENER_FAST: 1}
    assert site.endpoint.limits.count == 2
