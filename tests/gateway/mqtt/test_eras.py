"""What a subscription was for each message that it was sent."""

from __future__ import annotations

from gateway.mqtt.eras import ERAS_MAX, FORGOTTEN, Era, add_era, cut_eras, find_era, pack_eras, parse_eras
from gateway.mqtt.packets import NO_LOCAL


def rules_of(eras, offset):
    found = find_era(eras, offset)
    return None if found is None else found.rules


def test_era_ends_where_the_qos_becomes_none_or_some():
    eras = add_era((), Era(10, 3, 0), 1)
    eras = add_era(eras, Era(15, 0, 1), 2)
    eras = add_era(eras, Era(20, 0, 2), 0)
    assert [rules_of(eras, offset) for offset in (0, 9, 10, 19, 20)] == [0, 0, 2, 2, None]
    assert find_era(eras, 4).missed_until == 3


def test_era_ends_where_no_local_begins():
    eras = add_era((), Era(10, 0, 1), 1 | NO_LOCAL)
    assert [rules_of(eras, offset) for offset in (9, 10)] == [1, None]


def test_time_in_which_nothing_was_sent_is_none():
    eras = add_era(add_era((), Era(10, 0, 0), 1), Era(10, 0, 1), 0)
    assert [rules_of(eras, offset) for offset in (9, 10)] == [0, None]


def test_what_is_forgotten_says_so():
    eras = ()
    for number in range(ERAS_MAX + 1):
        eras = add_era(eras, Era(10 * number + 10, 0, number % 2), 1 - number % 2)
    assert len(eras) == ERAS_MAX
    assert [rules_of(eras, offset) for offset in (0, 19, 20, 29)] == [FORGOTTEN, FORGOTTEN, 0, 0]


def test_what_comes_behind_a_place_that_was_set_back_is_of_now():
    eras = (Era(10, 0, 0), Era(20, 0, 1), Era(30, 0, 0))
    assert cut_eras(eras, 15) == (Era(10, 0, 0), Era(15, 0, 1))
    assert cut_eras(eras, 30) == eras
    assert cut_eras((), 5) == ()


def test_eras_are_written_down():
    eras = (Era(10, 3, 0), Era(20, 0, 1 | NO_LOCAL))
    assert parse_eras(pack_eras(eras)) == eras
    assert parse_eras(b"") == ()
