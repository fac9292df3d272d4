from __future__ import annotations

from gateway.amqp.host_profile import CONNECTIONS_MAX, QUEUES_MAX, HostProfile, dump_profile, load_profile


def test_row_says_all_of_a_profile_and_whether_it_is_going():
    profile = HostProfile("of the plant", ("a", "b")).with_limit(QUEUES_MAX, 7).with_limit(CONNECTIONS_MAX, 0)
    profile = profile._replace(queue_type="quorum")
    assert load_profile(dump_profile(profile, is_going=False)) == (profile, False)
    assert load_profile(dump_profile(profile, is_going=True)) == (profile, True)
    assert profile.limits == {"max-connections": 0, "max-queues": 7}


def test_limit_below_nothing_is_none():
    profile = HostProfile().with_limit(QUEUES_MAX, 7).with_limit(QUEUES_MAX, -5)
    assert profile == HostProfile()
    assert profile.limits == {}
    assert dump_profile(profile, is_going=False) == b"{}"
