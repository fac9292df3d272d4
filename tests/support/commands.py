"""Runs the command line: in this process, or as a process of its own."""

from __future__ import annotations

import functools
import json
import logging
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import paho.mqtt.client
import paho.mqtt.publish
import typer.testing

from gateway.commands.main import cli
from tests.support.sources import ROOT

START_MAX_S = 0.5  # of the processor, for a command that only asks: what people take for at once

# The commands are made of their functions once, as in a process of `lmq`, and not for each call, which takes 90 ms.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def run_python(*arguments, env=None, **options):
    """Run Python in the source's folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        env=env,
        check=False,
        **options,
    )


def run_lmq(*arguments, **options):
    """Run `lmq` as a process."""
    return run_python("-m", "gateway", *arguments, **options)


def processor_s(*arguments):
    """Return what `lmq` takes of the processor as a process of its own: the least of three, as other work costs some.

    Checks that it succeeds.
    """

    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def cost():
        before = used()
        result = run_lmq(*arguments)
        assert result.returncode == 0, result.stderr
        return used() - before

    return min(cost() for _ in range(3))


def call_lmq(*arguments, **options):
    """Run `lmq` in this process."""
    with kept_levels():
        return typer.testing.CliRunner().invoke(cli, arguments, **options)


@contextmanager
def kept_levels() -> Iterator[None]:
    """Let the log be as it was afterwards: commands have libraries say less in their process."""
    before = _levels()
    try:
        yield
    finally:
        for name, level in _levels().items():
            if level != before.get(name, logging.NOTSET):
                logging.getLogger(name).setLevel(before.get(name, logging.NOTSET))


def _levels():
    loggers = logging.root.manager.loggerDict.items()
    return {name: logger.level for name, logger in loggers if isinstance(logger, logging.Logger)}


def check_refused(result, text):
    """Check that a process refused its arguments in one line."""
    assert result.returncode == 2, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if not re.search("Z (info|warning) ", line)]
    assert line.startswith("lmq: ")
    assert re.search(text, line), line
    assert "Traceback" not in result.stderr
    assert "ready" not in result.stdout


def at(gateway, door):
    """Return the options that lead to a door of a gateway that runs as a process."""
    host, port = gateway.address("namesrv" if door == "rocketmq" else door)
    return "--door", door, "--server", f"{host}:{port}"


def check_told(result, text, *, code=2):
    """Check that a call was refused in one line, with an exit code of its kind."""
    assert result.exit_code == code, result.stderr
    (line,) = result.stderr.splitlines()
    assert re.search(text, line), line


def told_json(*arguments, code=0, **options):
    """Return the one JSON value that a call prints when it is told `--json`."""
    result = call_lmq(*arguments, "--json", **options)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def told_rows(*arguments, **options):
    """Return the cells of the table that a call prints, its head first."""
    result = call_lmq(*arguments, **options)
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    return [re.split(r" {2,}", line) for line in lines if line.strip("─ ")]


def publish_mqtt(gateway, topic, body):
    """Publish a message to a gateway that runs as a process."""
    host, port = gateway.address("mqtt")
    paho.mqtt.publish.single(topic, body, qos=1, hostname=host, port=port)


AS_ON_A_TERMINAL = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
runpy.run_module("gateway", run_name="__main__", alter_sys=True)
"""


@contextmanager
def started_lmq(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start `lmq` as on a terminal, and end it where it has not ended by itself."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", AS_ON_A_TERMINAL, *arguments]
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def stayed(gateway, client_id, *filters):
    """Have an MQTT client be there with its session, subscribed at QoS 1."""
    host, port = gateway.address("mqtt")
    client = paho.mqtt.client.Client(paho.mqtt.client.CallbackAPIVersion.VERSION2, client_id, clean_session=False)
    came, granted = threading.Event(), threading.Event()
    client.on_connect = lambda *_: came.set()
    client.on_subscribe = lambda *_: granted.set()
    client.connect(host, port)
    client.loop_start()
    assert came.wait(10)
    if filters:
        client.subscribe([(one, 1) for one in filters])
        assert granted.wait(10)
    yield
    client.disconnect()
    client.loop_stop()
