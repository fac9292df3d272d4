"""RocketMQ's official Java client against a gateway that is a process of its own."""

from __future__ import annotations

import pytest

from tests.support.gateway import GatewayProcess
from tests.support.official_java import needs_java, run_java

pytestmark = [pytest.mark.slow, needs_java]


def test_requests_get_their_replies(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        said = run_java(tmp_path, "JavaRequestReply.java", namesrv, "5")
        assert [line for line in said.splitlines() if line.startswith("got")] == [
            f"got re: question {number}" for number in range(5)
        ], said
