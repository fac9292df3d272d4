"""The wheel and the source archive, and the wheel installed where nothing else is, with no source tree beside it.

`make test-wheel` makes the wheel and names it in LMQ_WHEEL; without that there is nothing to test. LMQ_WHEEL_PYTHON
names the Python that the wheel is for, where it is another than the one that runs the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePath

import aio_pika
import aiomqtt
import pytest

from tests.support.sources import PACKAGES, ROOT, compiled_list

WHEEL = Path(os.environ.get("LMQ_WHEEL") or "none").resolve()
PYTHON = os.environ.get("LMQ_WHEEL_PYTHON") or sys.executable
DOORS = ("mqtt", "amqp", "namesrv", "broker", "admin")
EVERYTHING = ["by mqtt", "by amqp", "by rocketmq"]
PROGRAM = """\
import asyncio, sys
from lmq import PullConsumer, Producer, amqp_queue

async def main(namesrv, *bodies):
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        for body in bodies:
            await producer.publish("plant/2/temp", body.encode())
        async for message in consumer.messages(amqp_queue("readings"), from_="first"):
            print(message.body.decode(), flush=True)
            if message.queue_offset == 2:
                return

asyncio.run(main(*sys.argv[1:]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not WHEEL.is_file(), reason="no wheel was made (make test-wheel)"),
]


def test_the_wheel_holds_what_runs_and_nothing_that_it_was_made_of():
    names = [name for name in zipfile.ZipFile(WHEEL).namelist() if not name.endswith("/")]
    endings = {PurePath(name).suffix for name in names if PurePath(name).parts[0] in PACKAGES}
    assert endings == {".py", ".so", ".typed", ".j2", ".css", ".html", ".js", ".svg"}
    console = ROOT / "gateway" / "admin" / "static"
    pages = {str(path.relative_to(ROOT)) for path in console.rglob("*") if path.is_file()}
    assert len(pages) > 10
    assert pages <= set(names)
    compiled = {name.partition(".")[0] + ".py" for name in names if name.endswith(".so")}
    assert compiled == {*compiled_list(), "core/_cython_shared.py"}
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert {PurePath(name).parts[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert "manylinux" in WHEEL.name


def test_the_source_archive_holds_what_a_clone_does():
    (archive,) = WHEEL.parent.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    for kept in ("README.md", "Makefile", "docs/architecture.md", "tests/integration/test_wheel.py", ".ci/run"):
        assert kept in names
    assert {name for name in names if name.endswith((".c", ".so"))} == {"tests/core/crc32_check.c"}
    headers = {"core/crc32.h", "gateway/net/socket_calls.h", "gateway/runtime/sync_calls.h"}
    assert headers | {"core/octets.pxd"} <= names


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="this is no clone")
def test_the_source_archive_holds_each_file_of_the_repository():
    (archive,) = WHEEL.parent.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(set(listed.stdout.split("\0")) - names) == []


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Make an environment that holds the wheel and what it asks for; return its folder of programs."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([PYTHON, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    constraints = str(ROOT / "requirements" / "constraints.txt")
    subprocess.run([*pip, "-c", constraints, str(WHEEL)], env=_without_sources(), check=True)
    return folder / "bin"


@contextlib.contextmanager
def _serve(environment, folder):
    """Run the installed `lmq serve` with its data in a folder; yield its addresses."""
    ports = [part for door in DOORS for part in (f"--{door}", "127.0.0.1:0")]
    process = subprocess.Popen(
        [str(environment / "lmq"), "serve", "--data-dir", str(folder / "data"), *ports],
        cwd=folder,
        env=_without_sources(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _addresses_of(process)
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


def _addresses_of(process):
    """Wait until the gateway is ready; return the address of each door."""
    addresses, said = {}, []
    for line in process.stdout:
        said.append(line)
        word, _, rest = line.strip().partition(" ")
        if word == "listening":
            door, _, address = rest.partition(" ")
            addresses[door] = address
        if word == "ready":
            break
    assert set(addresses) == set(DOORS), "".join(said)
    assert "uncompiled" not in "".join(said)
    return addresses


def _without_sources():
    """Return the environment without what leads to the sources, or would be a setting of the gateway."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("LMQ_")}


async def _read_with_the_sdk(environment, folder, namesrv, *bodies):
    """Send messages with the SDK of the wheel, then return the bodies of the first three of the queue `readings`."""
    (folder / "program.py").write_text(PROGRAM)
    program = await asyncio.create_subprocess_exec(
        str(environment / "python"),
        str(folder / "program.py"),
        namesrv,
        *bodies,
        cwd=folder,
        env=_without_sources(),
        stdout=subprocess.PIPE,
    )
    out, _ = await program.communicate()
    assert program.returncode == 0
    return out.decode().splitlines()


@pytest.mark.asyncio
async def test_a_message_goes_through_each_door_of_the_installed_gateway_and_is_there_after_a_restart(
    environment, tmp_path
):
    with _serve(environment, tmp_path) as gateway:
        async with await aio_pika.connect(f"amqp://guest:guest@{gateway['amqp']}/") as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("readings", durable=True)
            await queue.bind("amq.topic", "plant.*.temp")
            host, port = gateway["mqtt"].split(":")
            async with aiomqtt.Client(host, int(port)) as device:
                await device.subscribe("plant/#")
                await device.publish("plant/1/temp", "by mqtt", qos=1)
                exchange = await channel.get_exchange("amq.topic")
                durable = aio_pika.Message(b"by amqp", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await exchange.publish(durable, routing_key="plant.3.temp")
                pulled = await _read_with_the_sdk(environment, tmp_path, gateway["namesrv"], "by rocketmq")
                assert pulled == EVERYTHING
                assert [(await queue.get(timeout=20)).body.decode() for _ in range(3)] == EVERYTHING
                seen = [(await anext(device.messages)).payload.decode() for _ in range(3)]
                assert seen == EVERYTHING
    with _serve(environment, tmp_path) as gateway:
        assert await _read_with_the_sdk(environment, tmp_path, gateway["namesrv"]) == EVERYTHING
        async with await aio_pika.connect(f"amqp://guest:guest@{gateway['amqp']}/") as connection:
            queue = await (await connection.channel()).get_queue("readings")
            assert [(await queue.get(timeout=20)).body.decode() for _ in range(3)] == EVERYTHING


def test_programs_answer_without_a_gateway(environment, tmp_path):
    for command in (["--help"], ["config", "show"]):
        answer = subprocess.run(
            [str(environment / "lmq"), *command], cwd=tmp_path, env=_without_sources(), capture_output=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
