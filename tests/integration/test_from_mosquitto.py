"""A Mosquitto, and a gateway with the settings that `lmq config from-mosquitto` makes of its files: the same rights."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.integration.test_bridges import MOSQUITTO, Mosquitto
from tests.support.commands import call_lmq
from tests.support.gateway import GatewayProcess

pytestmark = [pytest.mark.slow, pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")]

ACL = """
topic read open/#
topic write open/in
pattern readwrite d/%u/#
pattern deny d/s2/secret/#
pattern write log/%c
user backend
topic readwrite d/#
topic deny d/s1/private
topic write cmd/#
"""
PASSWORDS = {"s1": "pw1", "s2": "pw2", "backend": "pw3"}
TOPICS = ("open/x", "open/in", "d/s1/a", "d/s1/private", "d/s2/a", "d/s2/secret/x", "log/c", "log/other", "cmd/x", "e")


def answers(port):
    """Return the reason code of a publish at QoS 1 by user and topic."""
    found = {}
    for user in ("", *PASSWORDS):
        login = ["-u", user, "-P", PASSWORDS[user]] if user else []
        for topic in TOPICS:
            found[user, topic] = publish(port, topic, *login)
    assert publish(port, "d/s1/a", "-u", "s1", "-P", "pw2") in {
        "134",
        "135",
    }  # bad user name or password, not authorized
    return found


def publish(port, topic, *login):
    command = ["mosquitto_pub", "-p", str(port), "-V", "5", "-i", "c", "-q", "1", "-d", "-t", topic, "-m", "x", *login]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    codes = re.findall(r"RC:(\d+)|CONNACK \(([1-9]\d*)\)", done.stdout)
    return max(filter(None, codes[-1])) if codes else "refused"


def test_converted_files_give_the_same_rights(tmp_path):
    (tmp_path / "acl").write_text(ACL)
    (tmp_path / "pw").write_text("")
    (tmp_path / "pw").chmod(0o644)
    for user, password in PASSWORDS.items():
        subprocess.run(["mosquitto_passwd", "-b", tmp_path / "pw", user, password], check=True, capture_output=True)
    broker = Mosquitto(tmp_path)
    broker.start("user root", f"password_file {tmp_path}/pw", f"acl_file {tmp_path}/acl")
    try:
        there = answers(broker.port)
    finally:
        broker.kill()
    made = call_lmq("config", "from-mosquitto", str(tmp_path / "mosquitto.conf"))
    assert made.exit_code == 0, made.stderr
    (tmp_path / "lmq.toml").write_text(made.stdout)
    with GatewayProcess(tmp_path / "data", "--config", str(tmp_path / "lmq.toml")) as gateway:
        assert answers(gateway.port("mqtt")) == there
