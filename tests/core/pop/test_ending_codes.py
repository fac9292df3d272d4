from __future__ import annotations

import pytest

from core.pop.ending_codes import LOST, MARK, OTHER, REASONS, Told, code_of, told_by


@pytest.mark.parametrize("reason", REASONS[1:])
def test_a_code_says_reason_and_moment_and_is_no_other_word(reason):
    code = code_of(reason, 1_795_767_349_777)
    assert told_by(code) == Told(reason, 1_795_767_349_777)
    assert 0 < code < LOST < MARK < 1 << 63


def test_what_has_no_number_ended_otherwise_and_moments_are_bounded():
    assert told_by(code_of("eaten by mice", -5)) == Told(OTHER, 0)
    assert told_by(99 << 48 | 7) == Told(OTHER, 7)
    assert told_by(code_of("expired", 1 << 60)).reason == "expired"
