"""The MQTT door as clients in other languages find it, with connections that break: `make clients` runs these.

Each client's program publishes at each QoS to a subscriber of its own, and counts what came.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys

import pytest

from tests.support.cutting_proxy import CuttingProxy
from tests.support.elsewhere import beside_ci, build
from tests.support.gateway import GatewayProcess

COUNT = int(os.environ.get("LMQ_TEST_CLIENTS_COUNT", "500"))
LINE = re.compile(r"qos=(\d) sent=(\d+) received=(\d+) duplicated=(\d+) lost=(\d+)")
CUTS = 3
# paho.mqtt.golang may publish a message again whose PUBREL it has sent, where the connection is cut then: it is another
# one for us (MQTT-4.3.3-1 forbids it). It publishes one at a time.
# Paho's Java client for MQTT 5 hands a message to its program before it sends the PUBREC, and does not know it again
# when it comes with DUP after a cut (MQTT-4.3.3-10 forbids it); it takes them one at a time.
REPEATS = {("paho_go", "4"): CUTS, ("paho_java", "5"): CUTS}
# What it had in flight it publishes again by the alias of the connection before (MQTT-3.3.2-7 forbids it), for ever.
NO_ALIASES = {("paho_java", "5")}

pytestmark = [pytest.mark.slow, pytest.mark.clients, beside_ci]


def mqttjs():
    folder = build("npm", "mqttjs", "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    return ["node", folder / "client.js"]


def paho_go():
    folder = build("go", "go", "go", "build", "-o", "client", ".")
    return [folder / "client"]


def java_program(name):
    folder = build("mvn", "java", "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
    subprocess.run(["javac", "-cp", "lib/*", "-d", "classes", *folder.glob("*.java")], cwd=folder, check=True)
    return ["java", "-cp", f"{folder}/lib/*:{folder}/classes", name]


def hivemq_java():
    return java_program("HiveMqClient")


def paho_java():
    return java_program("PahoClient")


@pytest.fixture
def gateway(make, version, tmp_path):
    aliases = "0" if (make.__name__, version) in NO_ALIASES else "32"
    with GatewayProcess(tmp_path, env={"LMQ_MQTT__TOPIC_ALIAS_MAX": aliases}) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("make", [mqttjs, paho_go, hivemq_java, paho_java], ids=lambda make: make.__name__)
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
