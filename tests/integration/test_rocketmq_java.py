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


def test_a_consumer_gets_what_its_sql_wants(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        said = run_java(tmp_path, "JavaSqlFilter.java", namesrv, "TAGS = 'odd' AND n BETWEEN 5 AND 11", "4")
        got = sorted(int(line[4:]) for line in said.splitlines() if line.startswith("got"))
        assert got == [5, 7, 9, 11], said
        refused = run_java(tmp_path, "JavaSqlFilter.java", namesrv, "n >", "1")
        assert "parse the consumer's subscription failed: unexpected the end at column 4" in refused
