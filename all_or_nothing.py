"""How setup.py builds: every module is compiled, or none is and the gateway is told why.

`LMQ_COMPILE=all` makes a failure an error, `LMQ_COMPILE=none` compiles nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

CHOICE = os.environ.get("LMQ_COMPILE", "")
RECORD = "core/uncompiled.txt"  # the gateway reads it as it starts


class AllOrNothing(build_ext):
    """Builds every module or none: compiled modules reach into each other."""

    packages: tuple[str, ...]

    def write_c(self) -> None:
        """Have Cython write the C of the extensions, and make that C their source."""
        raise NotImplementedError

    def run(self) -> None:
        """Compile what changed, remove what other builds left, and write down why where nothing is compiled."""
        reason = "LMQ_COMPILE=none was chosen" if CHOICE == "none" else ""
        try:
            if self.extensions:
                self.find_compiler()
                self.write_c()
            super().run()
        except (ImportError, BaseError, CCompilerError, OSError) as error:
            if CHOICE:
                raise
            reason = " ".join(str(error).split())
            print(f"lmq-gateway: going on uncompiled, which is several times slower: {reason}", file=sys.stderr)
            self.extensions = []
        target = Path("" if self.inplace else self.build_lib)
        built = {target / self.get_ext_filename(extension.name) for extension in self.extensions}
        for other in {path for package in self.packages for path in (target / package).rglob("*.so")} - built:
            other.unlink()
        (target / RECORD).unlink(missing_ok=True)
        if reason:
            (target / RECORD).parent.mkdir(parents=True, exist_ok=True)
            (target / RECORD).write_text(f"at the set-up: {reason}\n")

    def find_compiler(self) -> None:
        """Fail at once where there is no C compiler, and not after a minute of Cython's work."""
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        if not CHOICE and shutil.which(compiler.split()[0]) is None:
            raise OSError("no C compiler found")
