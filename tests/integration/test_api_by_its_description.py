"""The admin API, asked what its description allows and does not: `make schemathesis` runs this."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys

import pytest

from tests.support.elsewhere import BUILT, COLOURS, beside_ci, fetch
from tests.support.gateway import DOORS, GatewayProcess

TOOL = "schemathesis>=4,<5"
CASES = 10  # of each operation, made at random; the tool's coverage phase adds some thirty to each
FETCHED_S = 300
RUN_S = 900
# Streams that do not end, 503 that is meant, and what would take the run's own user or virtual host away.
LEFT_OUT = (
    r"/api/lmq/live|/api/health/checks/(port|protocol)-listener|/api/definitions|/api/vhosts/\{name\}|/api/lmq/rules"
)
ACCEPTED, ALLOWED = "positive_data_acceptance", "allow_header_conformance"
# Findings that are meant, by the check and what is answered: the description cannot say what is refused here.
MEANT = {
    ACCEPTED: (
        "page out of range",  # as RabbitMQ answers a page behind the end
        "is not an id from the list",
        "give offset or at_ms",  # one of two, or none without the other, from here on
        "say an offset or a moment",
        "give password or password_hash",
        "give name or about",
        "must be at most 4611686018427387904",  # the description has this number and the next rounded, as floats
        "must be at most 9223372036854775807",
        "a secret has 6 characters or more",  # texts of a form that the description does not say, from here on
        "is not a regular expression",
        "password_hash: ",
        "the password is empty",
        "no limit '",
        "is not a user of the gateway",
        "is not a topic of ",
        "RocketMQ's topics are of the virtual host",
        "there is already a token",
        "is a topic of RocketMQ",
        "the parameter '",  # RabbitMQ has parameters that are none here, from here on
        "Validation failed",
        "the name of a ",
    ),
    ALLOWED: ("Method Not Allowed",),  # a path such as /api/users/bulk-delete is one of /api/users/{name}, too
}
EXPLAINING = "GET /api/explain"  # a question that makes no sense is refused in words, as `detail`
ALLOWED_AT = re.compile(r"\w+ /api/users/(bulk-delete|without-permissions)")
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
    reports = tmp_path / "reports"
    with GatewayProcess(tmp_path / "data", doors=DOORS) as gateway:
        host, port = gateway.address("admin")
        tool = str(folder / "env" / "bin" / "st")
        command = [
            tool, "run", f"http://{host}:{port}/api/openapi.json", "--auth", "guest:guest", "--continue-on-failure",
            "--exclude-path-regex", LEFT_OUT, "--phases", "coverage,fuzzing", "-n", str(CASES),
            "--report", "ndjson", "--report-dir", str(reports),
        ]  # fmt: skip
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False)
    said = COLOURS.sub("", run.stdout)
    assert "Test cases:" in said, said + run.stderr
    assert run.returncode in {0, 1}, said + run.stderr
    (report,) = reports.glob("*.ndjson")
    with report.open() as lines:
        scenarios = [told for line in lines if (told := json.loads(line).get("ScenarioFinished")) is not None]
    asked = sum(len(one["recorder"]["cases"]) for one in scenarios)
    found = {finding for one in scenarios for finding in _findings(one["recorder"])}
    sys.stdout.write(f"{asked} cases, {len(found)} findings that are not meant\n")
    assert {one["status"] for one in scenarios} <= {"success", "failure", "skip"}, said
    assert not found, "\n".join(map(str, sorted(found)))


def _findings(recorder):
    """Give what is found in a scenario and not meant: operation, check, status and what was answered."""
    for case, checks in recorder["checks"].items():
        response = (recorder["interactions"].get(case) or {}).get("response") or {"status_code": 0}
        answer = base64.b64decode((response.get("content") or {}).get("$base64", "")).decode(errors="replace")
        for check in checks:
            finding = recorder["label"], check["name"], response["status_code"], answer[:200]
            if check["status"] == "failure" and not is_meant(*finding[:3], answer):
                yield finding


def is_meant(operation, check, status, answer):
    """Return whether a finding of the tool is an answer that is meant."""
    if check == ACCEPTED and operation.startswith(EXPLAINING):
        return status == 400 and answer.startswith('{"detail":')
    if not any(words in answer for words in MEANT.get(check, ())):
        return False
    return status == 400 if check == ACCEPTED else ALLOWED_AT.fullmatch(operation) is not None
