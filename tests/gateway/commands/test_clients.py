from __future__ import annotations

import pytest

from tests.support.commands import call_lmq, check_told


@pytest.mark.slow
def test_clients_that_are_not_there_cannot_be_parted_with(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    check_told(call_lmq("connection", "close", "999999", "--admin", admin), "^lmq: no connection '999999'$", code=4)
    check_told(call_lmq("session", "end", "no/body", "--admin", admin), "no session 'no/body'", code=4)
