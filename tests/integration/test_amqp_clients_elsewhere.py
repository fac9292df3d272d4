"""The AMQP door as RabbitMQ's clients find it, unmodified: `make clients-amqp` runs these.

Programs on amqplib and RabbitMQ's Java client run scenarios one by one, and print what each sent, received, had twice
and lost. The own test suites of clients run as they are, but for the address: which of their cases fail is listed here,
each with the reason, and docs/testing.md says what they give on RabbitMQ.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.certificates import server_files
from tests.support.elsewhere import BUILT, FETCH_S, PROGRAMS, beside_ci, build, fetch
from tests.support.gateway import ANY_PORT, DOORS, GatewayProcess

COUNT = int(os.environ.get("LMQ_TEST_CLIENTS_COUNT", "200"))
SOURCES = os.environ.get("LMQ_TEST_SUITES")  # a folder with checkouts of the suites; else git fetches them
RUN_S = 1_200
LINE = re.compile(r"([\w-]+) sent=(\d+) received=(\d+) duplicated=(\d+) lost=(\d+) wrong=(\d+)")
JS = [
    *("confirmed", "large", "requeued", "dead-letters", "priorities"),
    *("returned", "direct-reply", "headers", "cut-consumer"),
]
JAVA = ["confirmed", "transactional", "got", "quorum", "dead-letters", "rpc", "returned", "recovered"]
AS_RABBITMQ = {"LMQ_AMQP__PRODUCT": "RabbitMQ", "LMQ_STORE__MESSAGE_BYTES_MAX": str(32 << 20)}
GO_CLIENT = "github.com/rabbitmq/amqp091-go@v1.14.0"
DOCKER = "docker_client.py"  # in place of a suite's module that starts containers
GO_MANAGEMENT = "15672"  # in its source: where it asks the management API, to close its connections for instance

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(2 * FETCH_S + RUN_S), beside_ci]


@pytest.fixture
def gateway(tmp_path):
    certificate, key = map(str, server_files())
    by_tls = {"address": ANY_PORT, "tls": {"certificate": certificate, "key": key}}
    listen = {"LMQ_AMQP__LISTEN": json.dumps([ANY_PORT, by_tls]), "LMQ_STORE__SEGMENT_BYTES": str(64 << 20)}
    doors = tuple(door for door in DOORS if door != "amqp")
    with GatewayProcess(tmp_path / "data", env={**AS_RABBITMQ, **listen}, doors=doors) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


def run(command, folder, env, log):
    """Run a program, and return what it said."""
    with log.open("w") as said:
        subprocess.run(
            command, cwd=folder, env={**os.environ, **env}, stdout=said, stderr=said, timeout=RUN_S, check=False
        )
    return log.read_text()


def check_counts(name, said, scenarios):
    """Print the counts of a program, and check that it ran all scenarios and none lost or had a message twice."""
    found = {match[1]: tuple(map(int, match.groups()[1:])) for match in LINE.finditer(said)}
    sys.stdout.write(f"\n{name}\n")
    for scenario, numbers in found.items():
        sys.stdout.write("  {:14} sent={} received={} duplicated={} lost={} wrong={}\n".format(scenario, *numbers))
    assert list(found) == scenarios, said[-5_000:]
    assert {scenario: numbers for scenario, numbers in found.items() if numbers[2:] != (0, 0, 0)} == {}


def test_amqplib_loses_nothing_and_has_nothing_twice(gateway, tmp_path):
    folder = build("npm", "amqpjs", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    url = "amqp://{}:{}".format(*gateway.address("amqp"))
    check_counts("amqplib", run(["node", "client.js", url, str(COUNT)], folder, {}, tmp_path / "said"), JS)


def test_the_java_client_loses_nothing_and_has_nothing_twice(gateway, tmp_path):
    fetched = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
    folder = build("mvn", "amqpjava", *fetched)
    subprocess.run(
        ["javac", "-nowarn", "-cp", "lib/*", "-d", "classes", "AmqpClient.java"], cwd=folder, check=True, timeout=RUN_S
    )
    host, port = gateway.address("amqp")
    command = ["java", "-cp", "lib/*:classes", "AmqpClient", host, str(port), str(COUNT)]
    check_counts("amqp-client (Java)", run(command, folder, {}, tmp_path / "said"), JAVA)


def test_integration_tests_of_the_go_client_pass(gateway, tmp_path):
    module = json.loads(fetch("go", BUILT, "go", "mod", "download", "-json", GO_CLIENT))
    folder = BUILT / "amqpgo"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(module["Dir"], folder, copy_function=shutil.copyfile)
    for each in [folder, *folder.rglob("*")]:
        each.chmod(0o755)
    for path in folder.rglob("*.go"):
        path.write_text(path.read_text().replace(GO_MANAGEMENT, str(gateway.port("admin"))))
    fetch("go", folder, "go", "test", "-tags", "integration", "-c", "-o", "suite", ".")
    env = {"AMQP_URL": "amqp://guest:guest@{}:{}/".format(*gateway.address("amqp"))}
    said = run(["./suite", "-test.v", "-test.timeout", "15m"], folder, env, tmp_path / "go")
    passed, failed = (
        re.findall(r"^--- PASS: (\S+)", said, re.MULTILINE),
        re.findall(r"^--- FAIL: (\S+)", said, re.MULTILINE),
    )
    sys.stdout.write(f"\n{GO_CLIENT}: {len(passed)} passed, {len(failed)} failed\n")
    assert failed == [], said[-5_000:]
    assert len(passed) > 150, said[-5_000:]


class Suite:
    """The tests of a client in Python: where its source is, what they need, and how they are run."""

    def __init__(
        self,
        name,
        repository,
        tests,
        *,
        needs=(),
        options=(),
        is_pinned_to_port=False,
        is_in_containers=False,
        fails=(),
    ):
        self.name = name
        self.repository = repository
        self.tests = tests
        self.needs = needs
        self.options = options
        self.is_pinned_to_port = is_pinned_to_port  # 5672 is in its source
        self.is_in_containers = is_in_containers  # it starts its server, and is of a package that has to be installed
        self.fails = frozenset(fails)


PYTEST = ("pytest<9", "pytest-timeout", "pytest-rerunfailures")
ASYNC = ("aiomisc", "aiomisc-pytest", "pytest-rst", "pytest-cov", "shortuuid", "timeout-decorator")
SUITES = (
    Suite(
        "pika",
        "https://github.com/pika/pika",
        ["tests/acceptance/blocking_adapter_test.py", "tests/acceptance/async_adapter_tests.py"],
        needs=("tornado", "gevent", "twisted"),
        is_pinned_to_port=True,
    ),
    Suite(
        "py-amqp",
        "https://github.com/celery/py-amqp",
        ["t/integration/test_rmq.py"],
        needs=("case", "vine", "pytest-sugar"),
        options=("-E", "rabbitmq", "-k", "not tls"),
    ),
    Suite(
        "kombu",
        "https://github.com/celery/kombu",
        ["t/integration/test_py_amqp.py"],
        needs=("case", "amqp", "vine", "tzdata", "packaging", "Pyro4", "pytest-freezer", "hypothesis", "pytz"),
        options=("-E", "py-amqp"),
    ),
    Suite(
        "aiormq",
        "https://github.com/mosquito/aiormq",
        ["tests"],
        needs=(*ASYNC, "markdown-pytest"),
        options=("-k", "not amqps and not ssl"),  # that want a certificate of the suite's own authority
        is_in_containers=True,
    ),
    Suite("aio-pika", "https://github.com/mosquito/aio-pika", ["tests"], needs=ASYNC, is_in_containers=True),
)


def check_out(suite):
    """Return a copy of a suite's source."""
    folder = BUILT / "suites" / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    if SOURCES is not None:
        if not (Path(SOURCES) / suite.name).is_dir():
            pytest.skip(f"there is no {suite.name} in {SOURCES}")
        shutil.copytree(Path(SOURCES) / suite.name, folder)
    else:
        fetch("git", folder.parent, "git", "clone", "-q", "--depth", "1", suite.repository, str(folder))
    if suite.is_in_containers:
        shutil.copyfile(PROGRAMS / "amqpsuites" / DOCKER, folder / "tests" / DOCKER)
    return folder


def install(suite, source):
    """Return a Python that has what a suite needs."""
    folder = BUILT / "suites" / f"{suite.name}-venv"
    python = folder / "bin" / "python"
    if not python.exists():
        fetch(sys.executable, folder.parent, sys.executable, "-m", "venv", str(folder))
    needs = (*PYTEST, *suite.needs, *([str(source)] if suite.is_in_containers else []))
    fetch(str(python), folder, str(python), "-m", "pip", "install", "-q", "--prefer-binary", *needs)
    return python


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_own_tests_of_a_client_pass(gateway, tmp_path, suite):
    folder = check_out(suite)
    python = install(suite, folder)
    host, port = gateway.address("amqp")
    if suite.is_pinned_to_port:
        for path in [*folder.glob("tests/**/*.py")]:
            path.write_text(path.read_text().replace("5672", str(port)))
    env = {
        "AMQP_URL": f"amqp://guest:guest@{host}:{port}//",
        "RABBITMQ_HOST": host,
        "RABBITMQ_5672_TCP": str(port),
        "LMQ_AMQP_PORT": str(port),
        "LMQ_AMQPS_PORT": str(gateway.port("amqps")),
        "PYTHONPATH": str(folder),
    }
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:sugar", "--timeout", "90"]
    said = run([*command, *suite.options, *suite.tests, "-rf"], folder, env, tmp_path / "said")
    passed = re.search(r"(\d+) passed", said)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    sys.stdout.write(f"\n{suite.name}: {passed[1] if passed else 0} passed, {len(failed)} failed\n")
    assert passed is not None, said[-5_000:]
    assert set(failed) == suite.fails, said[-5_000:]
