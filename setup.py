"""Compile each module that has C types in a .pxd beside it; where that fails, install it uncompiled and say why.

`LMQ_COMPILE=all` makes a failure an error, `LMQ_COMPILE=none` compiles nothing. What `CFLAGS` says comes last.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

CHOICE = os.environ.get("LMQ_COMPILE", "")
PACKAGES = ("core", "gateway", "lmq", "spark_analytics")
DECLARED = [path for package in PACKAGES for path in sorted(Path(package).rglob("*.pxd"))]
# Inline C takes the place of its module in those that are compiled, and is no module itself.
COMPILED = [str(path.with_suffix(".py")) for path in DECLARED if "cdef inline" not in path.read_text(encoding="utf-8")]
SHARED = "core/_cython_shared.c"  # what Cython writes for memory views, once for all modules
DIRECTIVES = {
    "language_level": "3",
    "annotation_typing": False,
    "auto_pickle": False,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "show_performance_hints": bool(CHOICE),  # for developers
}
CFLAGS = ["-O2", "-g0", "-Werror=sign-compare", "-Werror=shift-count-overflow", "-Werror=implicit-function-declaration"]
CFLAGS += ["-Werror=incompatible-pointer-types"]  # such as a typed method taken as a value
CFLAGS += ["-Wno-maybe-uninitialized", "-Wno-stringop-overflow"]  # of what Cython itself writes
CFLAGS += os.environ.get("CFLAGS", "").split()


class AllOrNothing(build_ext):
    """Builds every module or none: compiled modules reach into each other."""

    def run(self) -> None:
        """Compile what changed, remove what other builds left, and write down why where nothing is compiled."""
        reason = "LMQ_COMPILE=none was chosen" if CHOICE == "none" else ""
        try:
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
        for other in {path for package in PACKAGES for path in (target / package).rglob("*.so")} - built:
            other.unlink()
        record = target / "core/uncompiled.txt"  # the gateway reads it as it starts
        record.unlink(missing_ok=True)
        if reason:
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(f"at the set-up: {reason}\n")

    def write_c(self) -> None:
        """Have Cython write the C of each module that is newer than its C, or of all where this file is newer."""
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        if not CHOICE and shutil.which(compiler.split()[0]) is None:
            raise OSError("no C compiler found")
        from Cython.Compiler import Options

        Options.buffer_max_dims = 2  # the least that Cython takes; a slice is passed by value, with so many dimensions
        from Cython.Build import cythonize  # reads the option

        is_old = not Path(SHARED).exists() or Path(SHARED).stat().st_mtime < Path(__file__).stat().st_mtime
        for of_lmq, shared in ((True, None), (False, module_name(SHARED))):  # lmq must not import core
            extensions = [one for one in self.extensions if one.name.startswith("lmq.") == of_lmq]
            written = cythonize(
                extensions,
                compiler_directives=DIRECTIVES,
                force=is_old,
                nthreads=self.parallel,
                quiet=True,
                shared_utility_qualified_name=shared,
            )
            for extension, one in zip(extensions, written, strict=True):
                extension.sources, extension.depends = one.sources, one.depends


def module_name(path: str) -> str:
    """Return the name of the module that is made of a source."""
    return path.rpartition(".")[0].replace("/", ".")


if __name__ == "__main__":  # Cython's processes import this file
    sources = [] if CHOICE == "none" else [SHARED, *COMPILED]
    modules = [Extension(module_name(one), [one], include_dirs=["."], extra_compile_args=CFLAGS) for one in sources]
    in_parallel = {"build_ext": {"parallel": len(os.sched_getaffinity(0))}}
    setup(ext_modules=modules, cmdclass={"build_ext": AllOrNothing}, options=in_parallel)
