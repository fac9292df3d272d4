"""What programs import works beside whatever else a project has, and needs nothing of the server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from tests.support.sources import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
PROGRAM = """\
import asyncio, sys
import core, gateway
from lmq import Producer, PullConsumer, mqtt_queue

async def main():
    async with Producer(sys.argv[1]) as producer, PullConsumer(sys.argv[1]) as consumer:
        await producer.send("Orders", b"first", queue_id=0)
        async for message in consumer.messages("Orders", from_="first"):
            print(core.OF_THE_PROJECT, gateway.OF_THE_PROJECT, message.body.decode(), mqtt_queue("a/+"))
            return

asyncio.run(main())
"""


@pytest.mark.asyncio
async def test_the_sdk_works_in_a_project_with_packages_called_core_and_gateway(namesrv, tmp_path):
    for package in ("core", "gateway"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("OF_THE_PROJECT = True")
    (tmp_path / "program.py").write_text(PROGRAM)
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        str(tmp_path / "program.py"),
        namesrv,
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, errors = await program.communicate()
    assert (program.returncode, out.decode().strip()) == (0, "True True first %LMQ%mqtt%a%|p"), errors.decode()


def test_lmq_needs_the_standard_library_alone():
    code = """\
import sys
before = set(sys.modules)
import lmq, lmq.testing
from lmq import *
names = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(names - {*sys.stdlib_module_names, "lmq"} - {name for name in names if name.startswith(("_", "cython"))}))
"""
    run = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
