"""The admin API, asked what its description allows and does not: `make schemathesis` runs this."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.elsewhere import BUILT, COLOURS, beside_ci, fetch
from tests.support.gateway import DOORS, GatewayProcess

TOOL = "schemathesis>=4,<5"
CASES = 10  # of each operation
FETCHED_S = 300
RUN_S = 900
CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
# Streams that do not end, 503 that is meant, and what would take the run's own user or virtual host away.
LEFT_OUT = (
    r"/api/lmq/live|/api/health/checks/(port|protocol)-listener|/api/definitions|/api/vhosts/\{name\}|/api/lmq/rules"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    beside_ci,
    pytest.mark.timeout(FETCHED_S + RUN_S),
]


def test_no_answer_is_a_fault_or_other_than_described(tmp_path):
    folder = BUILT / "schemathesis"
    if not (folder / "env" / "bin" / "st").exists():
        fetch(sys.executable, folder, sys.executable, "-m", "venv", "env")
        fetch(sys.executable, folder, "env/bin/pip", "install", "--quiet", TOOL)
    with GatewayProcess(tmp_path, doors=DOORS) as gateway:
        host, port = gateway.address("admin")
        tool = str(folder / "env" / "bin" / "st")
        command = [
            tool, "run", f"http://{host}:{port}/api/openapi.json", "--auth", "guest:guest",
            "--checks", CHECKS, "--exclude-path-regex", LEFT_OUT, "--phases", "fuzzing", "-n", str(CASES),
        ]  # fmt: skip
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False)
    said = COLOURS.sub("", run.stdout)
    assert "Test cases:" in said, said + run.stderr
    assert run.returncode == 0, said[said.find("FAILURES") :]
