"""The MQTT door as clients in other languages find it, with connections that break: `make clients` runs these.

Each client's program publishes at each QoS to a subscriber of its own, and counts what came.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cutting_proxy import CuttingProxy
from tests.support.gateway import GatewayProcess
from tests.support.sources import ROOT

COUNT = int(os.environ.get("LMQ_TEST_CLIENTS_COUNT", "500"))
FOLDER = Path(__file__).parent
BUILT = ROOT / "build" / "clients"
LINE = re.compile(r"qos=(\d) sent=(\d+) received=(\d+) duplicated=(\d+) lost=(\d+)")
FETCH_S = 300
CUTS = 3
# paho.mqtt.golang may publish a message again whose PUBREL it has sent, where the connection is cut then: it is another
# one for us (MQTT-4.3.3-1 forbids it). It publishes one at a time.
REPEATS = {("paho_go", "4"): CUTS}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    pytest.mark.skipif("LMQ_TEST_CLIENTS" not in os.environ, reason="beside CI: make clients runs them"),
]


def build(tool, name, *command):
    """Return a copy of a program's folder in which `command` has fetched and built what it needs."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    folder = BUILT / name
    shutil.copytree(FOLDER / name, folder, dirs_exist_ok=True)
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False)
    if made.returncode:
        pytest.skip(f"{tool} could not fetch or build it: {(made.stderr or made.stdout)[-500:]}")
    return folder


def mqttjs():
    folder = build("npm", "mqttjs", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    return ["node", folder / "client.js"]


def paho_go():
    folder = build("go", "go", "go", "build", "-o", "client", ".")
    return [folder / "client"]


def hivemq_java():
    lib = "dependency:copy-dependencies"
    folder = build("mvn", "java", "mvn", "-q", "-B", lib, "-DoutputDirectory=lib")
    return ["java", "-cp", f"{folder / 'lib'}/*", folder / "HiveMqClient.java"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("clients"), doors=("mqtt",)) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("make", [mqttjs, paho_go, hivemq_java], ids=lambda make: make.__name__)
def test_client_loses_nothing_and_has_nothing_twice_at_qos_2(gateway, make, version):
    command = make()
    with CuttingProxy(gateway.address("mqtt")) as proxy:
        arguments = ["127.0.0.1", str(proxy.port), version, str(COUNT)]
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as program:
            found = watch(program, proxy)
            program.kill()
    sys.stdout.write("\n".join((f"\n{make.__name__} version {version}", *found, "")))
    counts = [tuple(map(int, LINE.fullmatch(line).groups())) for line in found]
    assert [(qos, sent, lost) for qos, sent, _, _, lost in counts] == [(qos, COUNT, 0) for qos in range(3)]
    assert counts[0][3] == 0
    assert counts[2][3] <= REPEATS.get((make.__name__, version), 0)


def watch(program, proxy):
    """Cut the connections a few times once the program is ready for it; return what it counted."""
    found = []
    for line in program.stdout:
        if line == "cut me\n":
            for _ in range(CUTS):
                select.select([], [], [], 0.15)
                proxy.cut()
        elif LINE.fullmatch(line.strip()):
            found.append(line.strip())
        elif line == "done\n":
            break
    return found
