"""By which rules of a change a user may read less than before; many are compared in steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.auth.rule import Rule, is_same
from gateway.auth.rules import RULES_A_STEP, Steps
from gateway.settings.rules import RuleSettings

HASHES_A_STEP = 128  # some 10 us each


def seek_lost(before: Sequence[Rule], after: Sequence[Rule]) -> Steps[list[Rule]]:
    """Return, after some steps, the rules by whose going or coming a user may read less than before."""
    old = yield from _pick_reading(before)
    new = yield from _pick_reading(after)
    end = yield from _count_alike(zip(reversed(old), reversed(new), strict=False))
    old, new = old[: len(old) - end], new[: len(new) - end]
    start = yield from _count_alike(zip(old, new, strict=False))
    old, new = old[start:], new[start:]
    numbers: dict[RuleSettings, int] = {}
    was = yield from _number(old, numbers)
    now = yield from _number(new, numbers)
    both = set(was) & set(now)
    if [one for one in was if one in both] != [one for one in now if one in both]:
        both = set()  # in another order
    gone = [rule for rule, number in zip(old, was, strict=True) if rule.allows and number not in both]
    return gone + [rule for rule, number in zip(new, now, strict=True) if not rule.allows and number not in both]


def _pick_reading(rules: Sequence[Rule]) -> Steps[list[Rule]]:
    picked = []
    for count, rule in enumerate(rules, 1):
        if rule.is_of_reading:
            picked.append(rule)
        if count % RULES_A_STEP == 0:
            yield
    return picked


def _count_alike(pairs: Iterable[tuple[Rule, Rule]]) -> Steps[int]:
    """Return how many pairs there are before the first one that differs."""
    count = 0
    for one, other in pairs:
        if not is_same(one.said, other.said):
            break
        count += 1
        if count % HASHES_A_STEP == 0:
            yield
    return count


def _number(rules: Sequence[Rule], numbers: dict[RuleSettings, int]) -> Steps[list[int]]:
    """Return a number for each rule, the same one for those that say the same."""
    found = []
    for count, rule in enumerate(rules, 1):
        found.append(numbers.setdefault(rule.said, len(numbers)))
        if count % HASHES_A_STEP == 0:
            yield
    return found
