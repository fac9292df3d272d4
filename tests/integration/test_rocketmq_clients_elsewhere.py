"""The RocketMQ door as official clients find it, unmodified: `make clients-rocketmq` runs these, CI those in Java.

Each client's program runs its scenarios one by one, and prints what each sent, received, had twice and lost.
"wrong" are messages that were not to come at all, or came out of order, too early or with wrong attempts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.elsewhere import FETCH_S, beside_ci, build, in_ci
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.rocketmq_wire import Wire

COUNT = int(os.environ.get("LMQ_TEST_CLIENTS_COUNT", "200"))
RUN_S = 300
LINE = re.compile(r"([\w-]+) sent=(\d+) received=(\d+) duplicated=(\d+) lost=(\d+) wrong=(\d+)")
SOON = {
    "LMQ_ROCKETMQ__TRANSACTION_TIMEOUT_MS": "500",
    "LMQ_ROCKETMQ__TRANSACTION_CHECK_INTERVAL_MS": "1000",
    "LMQ_ROCKETMQ__DELAY_LEVELS": "1s 5s 1s 1s 1s",  # level 3 is that of what failed once
}
AT_LEAST_ONCE = {"rebalance"}  # a member is killed: what it had done and not committed comes again

SENDS = ["sync", "async", "oneway", "batch", "large", "ordered", "transactional", "delayed", "timed"]
CONSUMES = ["pull", "lite-pull", "push", "tag", "sql", "light-queue"]
GROUPS = ["orderly", "broadcasting", "retry", "dead-letters", "sent-back", "rebalance"]
JS = ["push", "large", "tag", "sql", "timed", "delayed", "retry", "retry-by-answer", "sent-back"]
UPDATE_AND_CREATE_TOPIC = 17
PLAIN = {"defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}

QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # it runs for a minute

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(FETCH_S + RUN_S)]


def java(version, *folders):
    """Return what runs a class of the Java programs on that version of the client."""
    lib, classes = f"lib-{version}", f"classes-{version}"
    fetch = ("mvn", "-q", "-B", "dependency:copy-dependencies", f"-Drocketmq.version={version}")
    folder = build("mvn", "rocketmqjava", *fetch, f"-DoutputDirectory={lib}")
    sources = [source for part in (folder, *(folder / name for name in folders)) for source in part.glob("*.java")]
    subprocess.run(["javac", "-nowarn", "-cp", f"{lib}/*", "-d", classes, *sources], cwd=folder, check=True)
    return ["java", *QUICK_JAVA, f"-Duser.home={folder}", "-cp", f"{folder}/{lib}/*:{folder}/{classes}"]


def java_4_9_8():
    return [*java("4.9.8"), "Clients"], [*SENDS, *CONSUMES, *GROUPS]


def java_5_5_0():
    return [*java("5.5.0", "five"), "Clients"], [*SENDS, *CONSUMES, *GROUPS]


def java_5_5_0_alone():
    return [*java("5.5.0", "five"), "Pops"], ["recalled", "pop"]


def rocketmq_go():
    folder = build("go", "rocketmqgo", "go", "mod", "download")
    subprocess.run(["go", "build", "-o", "client", "."], cwd=folder, check=True)
    consumes = ["poll" if name == "lite-pull" else name for name in CONSUMES]
    return [folder / "client"], [*SENDS, *consumes, *GROUPS]


def ali_ons():
    folder = build("npm", "rocketmqjs", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    return ["node", folder / "client.js"], JS


@pytest.fixture
def gateway(tmp_path):
    with GatewayProcess(tmp_path / "data", env=SOON, doors=DOORS) as running:
        with Wire(running.address("broker")) as wire:
            for name in JS:  # ali-ons sends to topics only that are there
                topic = {"topic": f"js-{name}", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
                assert wire.ask(UPDATE_AND_CREATE_TOPIC, **topic, **PLAIN).code == 0
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


@pytest.mark.parametrize(
    "make",
    [
        *(pytest.param(make, marks=in_ci) for make in (java_4_9_8, java_5_5_0, java_5_5_0_alone)),
        *(pytest.param(make, marks=beside_ci) for make in (rocketmq_go, ali_ons)),
    ],
    ids=lambda make: make.__name__,
)
def test_client_loses_nothing_and_has_nothing_twice(gateway, tmp_path, make):
    command, scenarios = make()
    namesrv, admin = ("{}:{}".format(*gateway.address(door)) for door in ("namesrv", "admin"))
    log = tmp_path / "said"
    with log.open("w") as said:
        arguments = [*command, namesrv, str(COUNT), admin]
        home = {**os.environ, "HOME": str(tmp_path)}  # where clients keep offsets of their own
        subprocess.run(arguments, stdout=said, stderr=said, env=home, timeout=RUN_S, check=False)
    found = [match.groups() for match in LINE.finditer(log.read_text())]
    sys.stdout.write(f"\n{make.__name__}\n")
    for name, *numbers in found:
        sys.stdout.write("  {:14} sent={} received={} duplicated={} lost={} wrong={}\n".format(name, *numbers))
    counts = {name: tuple(map(int, numbers)) for name, *numbers in found}
    assert list(counts) == scenarios, log.read_text()[-5000:]
    assert {name: count for name, count in counts.items() if count[3:] != (0, 0)} == {}
    assert {name for name, count in counts.items() if count[2]} <= AT_LEAST_ONCE
