from __future__ import annotations

from gateway.settings.tree import holds, merge


def test_what_is_above_counts_and_what_it_does_not_say_stays():
    low, high = {"mqtt": {"listen": "off", "rate": 1}, "log": 2}, {"mqtt": {"rate": 3}, "log": {"level": "info"}}
    assert merge(low, high) == {"mqtt": {"listen": "off", "rate": 3}, "log": {"level": "info"}}
    assert low == {"mqtt": {"listen": "off", "rate": 1}, "log": 2}


def test_places_are_names_and_numbers():
    tree = {"mqtt": {"listen": [{"address": "off"}]}}
    places = (("mqtt", "listen", 0, "address"), ("mqtt", "listen", 1), ("mqtt", "listen", "0"), ("mqtt", 0), ("amqp",))
    assert [holds(tree, place) for place in places[:1] + places[2:]] == [True, False, False, False]
