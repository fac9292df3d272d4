from __future__ import annotations

from gateway.giving_way import LONG_NS, PAUSE_NS_MAX, PAUSE_NS_MIN, GivingWay

MESSAGE_NS = 500_000  # from one to the next
SHORT_NS, SLICE_NS = 20_000, 3_000_000  # a client's turn, and that of who computes


class Core(GivingWay):
    """A core that others have for as long as a test says."""

    def __init__(self):
        super().__init__()
        self.now_ns = 5_000_000_000
        self.taken_ns = SHORT_NS
        self.given_at_ns = []

    def read_ns(self):
        return self.now_ns

    def give_up_core(self):
        self.given_at_ns.append(self.now_ns)
        self.now_ns += self.taken_ns

    def after(self, secs):
        """Give way for each message of so many seconds; return how often it was done."""
        until_ns = self.now_ns + round(secs * 1e9)
        count = len(self.given_at_ns)
        while self.now_ns < until_ns:
            self.now_ns += MESSAGE_NS
            self.give_way()
        return len(self.given_at_ns) - count


def test_clients_that_take_their_turn_are_given_way_each_time():
    core = Core()
    for taken_ns in (0, SHORT_NS, LONG_NS):
        core.taken_ns = taken_ns
        began_ns = core.now_ns
        given = core.after(1)
        assert given == (core.now_ns - began_ns) // (MESSAGE_NS + taken_ns)


def test_who_computes_is_given_way_ever_more_seldom_up_to_a_limit():
    core = Core()
    core.taken_ns = SLICE_NS
    core.after(60)
    gaps_ns = [after - before - SLICE_NS for before, after in zip(core.given_at_ns, core.given_at_ns[1:], strict=False)]
    expected_ns = PAUSE_NS_MIN
    for gap_ns in gaps_ns:
        assert expected_ns <= gap_ns <= expected_ns + MESSAGE_NS
        expected_ns = min(2 * expected_ns, PAUSE_NS_MAX)
    assert expected_ns == PAUSE_NS_MAX
    assert SLICE_NS * len(core.given_at_ns) < 0.01 * 60e9  # so much of the time is theirs at most


def test_after_one_long_time_it_goes_on_as_before_and_the_next_counts_for_itself():
    core = Core()
    for _ in range(3):
        core.taken_ns = SLICE_NS
        assert core.after(0.001) == 1
        core.taken_ns = SHORT_NS
        began_ns = core.now_ns
        assert core.after(1) > 1_000
        (first, *_) = [at_ns for at_ns in core.given_at_ns if at_ns >= began_ns]
        assert PAUSE_NS_MIN - 2 * MESSAGE_NS <= first - began_ns <= PAUSE_NS_MIN + MESSAGE_NS
