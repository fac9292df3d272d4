from __future__ import annotations

from gateway.amqp.field_map import NUMBER_BY_NAME, TOLD_FLAGS, TOLD_NAMES, TOLD_PREFIX, USER_ID_NAME


def test_each_property_that_only_amqp_has_is_told_under_one_name():
    assert len(TOLD_NAMES) == 14
    told = [number for number, name in enumerate(TOLD_NAMES) if name]
    assert sum(0x8000 >> number for number in told) == TOLD_FLAGS
    assert all(TOLD_NAMES[number].startswith(TOLD_PREFIX) for number in told)


def test_user_that_was_checked_cannot_be_said_by_others():
    assert USER_ID_NAME not in NUMBER_BY_NAME
    assert len(NUMBER_BY_NAME) == 8
