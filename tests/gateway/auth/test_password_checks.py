from __future__ import annotations

import logging

import pytest

from gateway.auth import password_checks
from gateway.auth.check_threads import THREADS_MAX
from gateway.auth.password_checks import (
    ANSWERS_MAX,
    FREE_WRONG_COUNT,
    LANES_MAX,
    REST_MS_MAX,
    WAITING_MAX,
    PasswordChecks,
    find_rest_ms,
)
from gateway.auth.penalty_box import PenaltyBox
from gateway.settings.penalties import PenaltySettings
from tests.support.logins import HandClock, HandWork

RIGHT = b"right"


class Site:
    """Checks that wait for the test; the password `right` is right, and each answer is noted with its tag."""

    def __init__(self):
        self.work = HandWork()
        self.work.holds = True
        self.now_ms = 1_000_000
        self.checks = PasswordChecks(self.work, HandClock(lambda: self.now_ms))
        self.answers = []
        self.checked = []

    def ask(self, host, password=b"wrong", name=b"n", tag=None):
        tag = (host, password) if tag is None else tag

        def check():
            self.checked.append(tag)
            return password == RIGHT

        return self.checks.add(
            host, name, name + b"/" + password, check, lambda found: self.answers.append((tag, found))
        )


@pytest.fixture
def site():
    return Site()


def test_each_password_is_told_right_or_wrong(site):
    site.ask("10.0.0.1", RIGHT)
    site.ask("10.0.0.2")
    site.work.finish_all()
    assert dict(site.answers) == {("10.0.0.1", RIGHT): True, ("10.0.0.2", b"wrong"): False}


def test_one_address_has_one_check_under_way_and_all_have_as_many_as_there_are_threads(site):
    for number in range(3):
        site.ask("10.0.0.1", b"%d" % number)
    assert len(site.work.held) == 1
    for number in range(4):
        site.ask(f"10.0.1.{number}")
    assert len(site.work.held) == THREADS_MAX


def test_addresses_take_turns(site):
    for number in range(50):
        site.ask("10.0.0.1", b"%d" % number, name=b"%d" % number)
    site.ask("10.0.0.2", RIGHT, tag="other")
    site.work.finish(2)
    assert ("other", True) in site.answers


def test_names_of_one_address_take_turns(site):
    for number in range(50):
        site.ask("10.0.0.1", b"%d" % number)
    site.ask("10.0.0.1", RIGHT, name=b"mine", tag="mine")
    site.work.finish(3)
    assert ("mine", True) in site.answers


def test_right_password_behind_the_address_of_a_guesser_gets_in(site):
    """The guesser always has 100 attempts waiting, at the very name."""
    for number in range(100):
        site.ask("10.0.0.1", b"guess %d" % number)
    for number in range(30):
        site.work.finish()
        site.ask("10.0.0.1", b"more %d" % number)
        site.work.pass_time(REST_MS_MAX)
    site.ask("10.0.0.1", RIGHT, tag="mine")
    site.work.finish()
    site.work.pass_time(REST_MS_MAX)
    site.work.finish()
    assert ("mine", True) in site.answers


def test_wrong_ones_are_checked_later_and_later(site):
    rests = []
    for number in range(FREE_WRONG_COUNT + 8):
        site.ask("10.0.0.1", b"%d" % number)
        rested = 0
        while not site.work.held:
            site.work.pass_time(1)
            rested += 1
        rests.append(rested)
        site.work.finish()
    assert rests == [0] * (FREE_WRONG_COUNT + 1) + [50, 100, 200, 400, 800, 1000, 1000]
    assert find_rest_ms(1 << 40) == REST_MS_MAX
    site.ask("10.0.0.2", b"other address")
    site.ask("10.0.0.1", b"other name", name=b"other")
    assert len(site.work.held) == 2


def test_address_that_was_wrong_long_ago_is_as_new(site):
    for number in range(FREE_WRONG_COUNT + 5):
        site.ask("10.0.0.1", b"%d" % number)
        site.work.pass_time(REST_MS_MAX)
        site.work.finish()
    site.work.pass_time(REST_MS_MAX)
    site.now_ms += 60_001
    for number in range(2):
        site.ask("10.0.0.1", b"later %d" % number)
    site.work.finish(2)
    assert len(site.answers) == FREE_WRONG_COUNT + 7


def test_what_was_found_out_is_not_checked_again(site):
    for password in (RIGHT, b"wrong"):
        site.ask("10.0.0.1", password)
    site.work.finish_all()
    site.ask("10.0.0.2", b"wrong", tag="again")
    site.ask("10.0.0.2", RIGHT, tag="right again")
    assert site.answers[2:] == [("again", False), ("right again", True)]
    assert len(site.checked) == 2


def test_fleet_with_one_password_is_let_in_a_few_a_turn_after_one_check(site):
    for number in range(100):
        site.ask("10.0.0.1", RIGHT, tag=number)
    site.work.finish()
    assert len(site.answers) == 1 + ANSWERS_MAX
    turns = 0
    while site.work.later:
        site.work.pass_time()
        turns += 1
    assert len(site.answers) == 100
    assert turns == 1 + 99 // ANSWERS_MAX
    assert len(site.checked) == 1


def test_too_many_waiting_costs_the_address_that_has_most_of_them(site):
    site.ask("10.0.0.9", RIGHT, tag="under way")
    mine = [site.ask("10.0.0.1", RIGHT, tag="first"), site.ask("10.0.0.1", b"x", name=b"2", tag="mine")]
    for number in range(WAITING_MAX + 10):
        site.ask("10.0.0.2", b"%d" % number, tag=number)
    assert [tag for tag, _ in site.answers] == list(range(len(site.answers)))  # the oldest of 10.0.0.2
    assert {found for _, found in site.answers} == {None}
    assert len(site.answers) == 11
    assert len(mine[0].lane.address.attempts) == 1


def test_attempt_that_is_cancelled_is_neither_checked_nor_told(site):
    under_way = site.ask("10.0.0.1", tag="under way")
    waiting = site.ask("10.0.0.1", b"x", tag="waiting")
    site.checks.cancel(under_way)
    site.checks.cancel(waiting)
    site.work.finish_all()
    assert site.answers == []
    assert site.checked == ["under way"]


def test_nothing_is_left_of_those_who_are_gone(site):
    for number in range(100):
        site.checks.cancel(site.ask(f"10.0.0.{number}", b"%d" % number))
        site.ask(f"10.0.1.{number}", RIGHT)
    site.work.finish_all()
    for _ in range(10):
        site.work.pass_time(REST_MS_MAX)
    wrong = 2  # of those gone, these were under way
    assert len(site.checks._lanes) <= wrong
    assert len(site.checks._addresses) <= wrong
    assert site.checks._waiting_count == 0
    assert not site.checks._ready


def test_addresses_that_were_wrong_are_remembered_up_to_a_bound():
    site = Site()
    site.work.holds = False
    for number in range(LANES_MAX + 100):
        site.ask(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", b"%d" % number)
    assert len(site.checks._lanes) == LANES_MAX
    assert len(site.checks._addresses) == LANES_MAX


def test_check_that_failed_is_told_as_none_and_remembered_as_nothing(site):
    site.ask("10.0.0.1", b"x", tag="failed")
    (_, then) = site.work.held.pop()
    then(None)
    assert site.answers == [("failed", None)]
    site.ask("10.0.0.1", b"x")
    assert len(site.work.held) == 1


def test_fault_in_what_follows_a_login_stops_no_other(site, caplog):
    caplog.set_level(logging.CRITICAL, password_checks.LOGGER.name)
    site.checks.add("10.0.0.1", b"n", b"d", lambda: True, lambda found: 1 // 0)
    site.ask("10.0.0.1", RIGHT, tag="next")
    site.work.finish_all()
    assert site.answers == [("next", True)]


def test_answer_without_a_digest_is_not_remembered(site):
    answers = []
    for _ in range(2):
        site.checks.add("10.0.0.1", b"n", b"", lambda: True, answers.append)
        site.work.finish_all()
    assert answers == [True, True]
    assert site.work.count == 2
    assert len(site.checks.right) == 0


def _punish(site, wrong_max, **settings):
    site.checks.box = PenaltyBox(PenaltySettings(wrong_max=wrong_max, refuse_s=60, **settings))
    site.work.holds = False


def test_address_that_guesses_is_refused_unchecked_for_a_while_and_others_are_not(site):
    _punish(site, 3)
    site.ask("10.0.0.2", RIGHT, tag="known")
    for number in range(3):
        site.ask("10.0.0.1", b"guess %d" % number, name=b"n%d" % number)
    site.answers.clear()
    site.checked.clear()
    site.ask("10.0.0.1", RIGHT, name=b"other", tag="refused")
    site.ask("10.0.0.1", RIGHT, tag="right before")
    site.ask("10.0.0.9", RIGHT, name=b"third", tag="from elsewhere")
    assert site.answers == [("refused", None), ("right before", True), ("from elsewhere", True)]
    assert site.checked == ["from elsewhere"]
    site.now_ms += 60_000
    site.ask("10.0.0.1", RIGHT, name=b"other", tag="later")
    assert site.answers[-1] == ("later", True)


def test_device_that_comes_back_with_one_wrong_password_is_not_a_guesser(site):
    _punish(site, 3)
    for _ in range(20):
        site.ask("10.0.0.1", b"old")
        site.work.pass_time(REST_MS_MAX)
    site.ask("10.0.0.1", RIGHT, name=b"neighbour")
    assert site.answers[-1] == (("10.0.0.1", RIGHT), True)


def test_signatures_that_are_wrong_count_a_few_times_for_each_name(site):
    _punish(site, FREE_WRONG_COUNT + 2)

    def sign(name):
        site.checks.add("10.0.0.1", name, b"", lambda: False, site.answers.append)
        site.work.pass_time(REST_MS_MAX)

    for _ in range(FREE_WRONG_COUNT + 10):
        sign(b"one client")
    assert set(site.answers) == {False}
    sign(b"second name")
    sign(b"third name")
    sign(b"fourth name")
    assert site.answers[-1] is None


def test_an_address_has_as_many_checks_under_way_as_it_is_let_have_and_leaves_room_for_others():
    work = HandWork()
    work.holds = True
    checks = PasswordChecks(work, HandClock(lambda: 1_000_000), running_max=4, of_address_max=3)
    answers = []
    for host in ("10.0.0.1", "10.0.0.2"):
        for number in range(5):
            name = b"%d" % number
            checks.add(host, name, b"", lambda: True, lambda found, tag=(host, name): answers.append(tag))
    assert len(work.held) == 4
    work.finish_all()
    assert len(answers) == 10
    assert [host for host, _ in answers[:4]] == ["10.0.0.1"] * 3 + ["10.0.0.2"]
