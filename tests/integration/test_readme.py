"""The README's five minutes, as they are written, against a real gateway."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

from tests.support.gateway import DOORS, GatewayProcess
from tests.support.sources import ROOT

PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


class Program:
    """A program of the README on the gateway's own ports; its lines of output are collected."""

    def __init__(self, text, gateway, folder):
        text = text.replace("@127.0.0.1/", f"@127.0.0.1:{gateway.port('amqp')}/")
        text = text.replace("127.0.0.1:9876", f"127.0.0.1:{gateway.port('namesrv')}")
        path = folder / f"program{len(list(folder.iterdir()))}.py"
        path.write_text(text)
        self.lines = []
        self.grown = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self):
        with self.process.stdout as stream:
            for line in stream:
                with self.grown:
                    self.lines.append(line.strip())
                    self.grown.notify_all()

    def until(self, line):
        """Wait until the program printed `line`."""
        with self.grown:
            assert self.grown.wait_for(lambda: line in self.lines, timeout=30), self.lines

    def end(self):
        self.process.kill()
        self.process.wait()


def _lmq(*arguments):
    command = [sys.executable, "-m", "gateway", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _publish(gateway, topic, body):
    _lmq("publish", topic, body, "--server", f"127.0.0.1:{gateway.port('mqtt')}")


def _explain(gateway, topic):
    return _lmq("explain", "topic", topic, "--admin", f"http://127.0.0.1:{gateway.port('admin')}")


@pytest.mark.slow
def test_five_minutes_go_as_they_are_told(tmp_path):
    consume, pull = PROGRAMS
    (tmp_path / "programs").mkdir()
    with GatewayProcess(tmp_path / "data", doors=DOORS) as gateway:
        consumer = Program(consume, gateway, tmp_path / "programs")
        puller = None
        try:
            while "bindings: amq.topic plant.*.temp" not in _explain(gateway, "plant/1/temp"):
                assert consumer.process.poll() is None
            _publish(gateway, "plant/1/temp", "21.5")
            consumer.until("plant.1.temp 21.5")
            puller = Program(pull, gateway, tmp_path / "programs")
            puller.until("0 plant/1/temp 21.5")
            _publish(gateway, "plant/2/temp", "19.0")
            consumer.until("plant.2.temp 19.0")
            puller.until("1 plant/2/temp 19.0")
            mqtt = ("--server", f"127.0.0.1:{gateway.port('mqtt')}")
            told = _lmq("subscribe", "plant/#", "--from", "-1h", "--count", "2", *mqtt)
            assert told == "plant/1/temp 21.5\nplant/2/temp 19.0\n"
            assert "consumers" in _lmq("bench", "pubsub", "--qos", "1", "--subs", "4", "--count", "100", *mqtt)
        finally:
            consumer.end()
            if puller is not None:
                puller.end()
        assert gateway.stop() == 0
