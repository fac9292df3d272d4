from __future__ import annotations

import pytest

from tests.support.commands import call_lmq, check_told


@pytest.mark.slow
def test_a_group_is_sent_to_a_place_that_is_there(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    result = call_lmq("group", "reset", "billing", "ORDERS/0", "--admin", admin)
    check_told(result, "give offset or at_ms")
    result = call_lmq("group", "reset", "billing", "ORDERS/0", "--offset", "0", "--admin", admin)
    check_told(result, "no light queue 'ORDERS/0'", code=4)
