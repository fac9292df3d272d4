"""Which rules of a change take something from a reader."""

from __future__ import annotations

import pytest

from gateway.auth.rule_losses import HASHES_A_STEP, seek_lost
from gateway.auth.rules import at_once
from tests.gateway.auth.test_rule import rules

DENY = {"permit": "deny"}


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ([], [], 0),
        ([], [{"topics": ["a"]}], 0),
        ([], [{**DENY, "topics": ["a"]}], 1),
        ([{**DENY, "topics": ["a"]}], [], 0),
        ([{"topics": ["a"]}], [], 1),
        ([{"topics": ["a"]}, DENY], [{"topics": ["b"]}, {"topics": ["a"]}, DENY], 0),
        ([{"topics": ["a"]}, DENY], [DENY, {"topics": ["a"]}], 2),
        ([{"topics": ["a"], "actions": ["publish"]}], [], 0),
    ],
)
def test_whose_going_or_coming_takes_something_from_readers(before, after, lost):
    assert len(at_once(seek_lost(rules(*before), rules(*after)))) == lost


def many(count):
    return [{"topics": [f"t/{number}"]} for number in range(count)]


def test_one_among_many_is_found_wherever_it_is():
    before = rules(*many(1_000))
    for place in (0, 500, 999):
        said = many(1_000)
        del said[place]
        assert [rule.number for rule in at_once(seek_lost(before, rules(*said)))] == [place]
        said.insert(place, DENY)
        assert len(at_once(seek_lost(before, rules(*said)))) == 2


def test_no_step_compares_more_than_some(monkeypatch):
    compared = []
    monkeypatch.setattr("gateway.auth.rule_losses.is_same", lambda one, other: compared.append(one) or one == other)
    before, after = rules(*many(1_000)), rules(DENY, *many(1_000))
    longest, last = 0, 0
    for _ in seek_lost(before, after):
        longest, last = max(longest, len(compared) - last), len(compared)
    assert len(compared) >= 1_000
    assert longest <= HASHES_A_STEP
