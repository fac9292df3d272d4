from __future__ import annotations

from gateway.amqp.passing_names import PassingNames


def test_there_are_as_many_names_as_were_in_use_at_one_time():
    names = PassingNames(b"/")
    first, second = names.take(), names.take()
    assert first != second
    names.give_back(first)
    assert names.take() == first
    assert names.take() not in {first, second}
