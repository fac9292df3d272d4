from __future__ import annotations

import pytest

from tests.support.commands import call_lmq, check_told


@pytest.mark.slow
def test_messages_come_from_stdin_and_unknown_ones_are_told_so(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    result = call_lmq("publish", "nobody.here", "--admin", admin, input="from stdin")
    assert (result.exit_code, result.stderr) == (3, "lmq: the message reaches no queue\n")
    told = call_lmq("publish", "nobody.here", "x", "--header", "colour", "--admin", admin)
    check_told(told, "^lmq: --header colour: it has to be NAME=VALUE$")
    check_told(call_lmq("message", "999999999999", "--admin", admin), "no such message is kept")
