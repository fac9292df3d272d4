from __future__ import annotations

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.group_table import DEFAULT, Group, GroupTable
from tests.support.stores import MemoryTable


def test_a_group_has_the_defaults_until_it_is_set_up_and_keeps_what_was_set():
    rows = MemoryTable()
    assert GroupTable(rows).get(b"g") == DEFAULT
    GroupTable(rows).set(b"g", Group(retryMaxTimes=3, consumeEnable=False))
    assert GroupTable(rows).get(b"g") == Group(retryMaxTimes=3, consumeEnable=False)
    assert list(GroupTable(rows).items()) == [(b"g", Group(retryMaxTimes=3, consumeEnable=False))]
    table = GroupTable(rows)
    table.delete(b"g")
    assert table.get(b"g") == GroupTable(rows).get(b"g") == DEFAULT


@pytest.mark.parametrize("group", [Group(retryQueueNums=-1), Group(retryQueueNums=2000), Group(retryMaxTimes=1 << 40)])
def test_impossible_numbers_are_refused(group):
    with pytest.raises(CommandRefusedError) as caught:
        GroupTable(MemoryTable()).set(b"g", group)
    assert caught.value.code == 29


def test_a_row_from_before_groups_could_be_ordered_is_one_of_a_group_that_is_not():
    rows = MemoryTable()
    rows.put(b"g", b'{"consumeEnable": false, "consumeBroadcastEnable": true, "retryMaxTimes": 3}')
    assert GroupTable(rows).get(b"g") == Group(consumeEnable=False, retryMaxTimes=3, consumeMessageOrderly=False)
