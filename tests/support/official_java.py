"""RocketMQ's own Java programs, where their jars and a Java are there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

JARS = os.environ.get("LMQ_TEST_ROCKETMQ_LIB", "")  # a folder with rocketmq-client and all that it needs
OPENED = (
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
)  # what mqadmin wants of a Java
PROGRAMS = Path(__file__).parents[1] / "integration"
TIMEOUT_S = 120
needs_java = pytest.mark.skipif(
    not JARS or not shutil.which("java"), reason="LMQ_TEST_ROCKETMQ_LIB names no jars, or no Java"
)
needs_tools = pytest.mark.skipif(
    not list(Path(JARS or ".").glob("rocketmq-tools-*.jar")) or not shutil.which("java"),
    reason="LMQ_TEST_ROCKETMQ_LIB names no jars of rocketmq-tools, or no Java",
)


def run_java(folder: Path, program: str, *arguments: str, options: tuple[str, ...] = ()) -> str:
    """Run a class of the jars, or a source file of the tests; return all that it printed."""
    command = ["java", f"-Duser.home={folder}", *options, "-cp", f"{JARS}/*"]
    command.append(str(PROGRAMS / program) if program.endswith(".java") else program)
    command += arguments
    run = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=folder,  # where some tools write what they found
    )
    return run.stdout
