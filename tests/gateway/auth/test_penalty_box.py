from __future__ import annotations

import pytest

from gateway.address import pack_network
from gateway.auth.penalty_box import ADDRESSES_MAX, PenaltyBox
from gateway.settings.penalties import PenaltySettings

HOST = "192.0.2.7"


class Site:
    """A box with a clock."""

    def __init__(self, **settings):
        said = {"wrong_max": 3, "within_s": 100, "refuse_s": 10, "refuse_s_max": 40, **settings}
        self.box = PenaltyBox(PenaltySettings(**said))
        self.now_s = 1_000
        self.told = []
        self.box.on_penalty = lambda host, refuse_s: self.told.append((host, refuse_s))

    def wrong(self, host=HOST, count=1):
        for _ in range(count):
            self.box.note_wrong(pack_network(host), host, self.now_s * 1_000)
        return self

    def refuses(self, host=HOST):
        return self.box.refuses(pack_network(host), self.now_s * 1_000)


def test_address_is_refused_longer_each_time_and_no_longer_than_the_most():
    site = Site()
    for _ in range(4):
        site.wrong(count=2)
        assert not site.refuses()
        site.wrong()
        assert site.refuses()
        site.now_s += site.told[-1][1] - 1
        assert site.refuses()
        site.now_s += 1
        assert not site.refuses()
    assert site.told == [(HOST, 10), (HOST, 20), (HOST, 40), (HOST, 40)]
    assert (site.box.penalty_count, site.box.refused_count) == (4, 8)


def test_wrong_ones_that_are_far_apart_do_not_count_together():
    site = Site()
    for _ in range(10):
        site.wrong(count=2)
        site.now_s += 101
    assert not site.told
    site.wrong(count=3)
    site.now_s += 1_000
    site.wrong(count=3)
    assert site.told == [(HOST, 10), (HOST, 10)]


def test_address_of_ipv6_is_its_network_and_others_are_not_refused():
    site = Site()
    for number in range(3):
        site.wrong(f"2001:db8::{number}")
    assert site.refuses("2001:db8::ffff")
    assert not site.refuses("2001:db8:0:1::1")
    assert not site.refuses(HOST)
    site.wrong("::ffff:192.0.2.7", 3)
    assert site.refuses(HOST)
    assert site.box.count(site.now_s * 1_000) == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "unix", "10.1.2.3", "::ffff:10.1.2.3"])
def test_this_machine_and_networks_that_are_exempt_are_not_refused(host):
    site = Site(exempt=("10.0.0.0/8", "2001:db8::/32"))
    assert not site.wrong(host, 100).refuses(host)


def test_this_machine_is_refused_where_that_is_wanted():
    assert Site(loopback=True).wrong("127.0.0.1", 3).refuses("127.0.0.1")


def test_without_a_number_nobody_is_refused_and_settings_may_change():
    site = Site(wrong_max=0)
    assert not site.wrong(count=100).refuses()
    site.box.use(PenaltySettings(wrong_max=1))
    assert site.wrong().refuses()
    site.box.use(PenaltySettings(wrong_max=0))
    assert not site.refuses()


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first():
    site = Site()
    site.wrong("192.0.2.1", 3)
    for number in range(ADDRESSES_MAX):
        site.box.note_wrong(b"%d" % number, HOST, site.now_s * 1_000)
    assert len(site.box._records) == ADDRESSES_MAX
    assert not site.refuses("192.0.2.1")


def test_rest_of_the_time_is_told_in_whole_seconds_until_it_is_over():
    site = Site().wrong(count=3)
    network = pack_network(HOST)
    at_ms = site.now_s * 1_000
    moments = ((0, 10), (1, 10), (9_001, 1), (9_999, 1), (10_000, 0), (99_000, 0))
    assert [(ms, site.box.find_left_s(network, at_ms + ms)) for ms, _ in moments] == list(moments)
    assert site.box.find_left_s(pack_network("192.0.2.8"), at_ms) == 0
