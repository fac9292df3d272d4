"""What is compiled, and how: each module that has C types in a .pxd beside it; levels.py says how far it is optimised.

all_or_nothing.py says where it fails. What `CFLAGS` says comes last.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from pathlib import Path

from setuptools import Extension, setup

sys.path.insert(0, str(Path(__file__).resolve().parent))  # where pip runs this file, its folder is not on the path
from all_or_nothing import CHOICE, AllOrNothing
from levels import level_of

PACKAGES = ("core", "gateway", "lmq", "spark_analytics")
DECLARED = [path for package in PACKAGES for path in sorted(Path(package).rglob("*.pxd"))]
# Inline C takes the place of its module in those that are compiled, and is no module itself.
COMPILED = [str(path.with_suffix(".py")) for path in DECLARED if "cdef inline" not in path.read_text(encoding="utf-8")]
SHARED = "core/_cython_shared.c"  # what Cython writes for memory views, once for all modules but those of lmq
DIRECTIVES = {"language_level": "3", "annotation_typing": False, "auto_pickle": False, "boundscheck": True}
DIRECTIVES |= {"wraparound": False, "initializedcheck": False, "show_performance_hints": bool(CHOICE)}
CFLAGS = ["-g0", "-Werror=sign-compare", "-Werror=shift-count-overflow", "-Werror=implicit-function-declaration"]
CFLAGS += ["-Werror=incompatible-pointer-types"]  # such as a typed method taken as a value
CFLAGS += ["-Wno-maybe-uninitialized", "-Wno-stringop-overflow"]  # of what Cython itself writes
CFLAGS += os.environ.get("CFLAGS", "").split()


class BuildExt(AllOrNothing):
    """Has Cython write the C of each module that is newer than its C, or of all where setup.py or levels.py is."""

    packages = PACKAGES

    def write_c(self) -> None:
        """Make the C the source of each extension."""
        from Cython.Compiler import Options

        gc.set_threshold(200_000)  # up to a fifth of Cython's time goes into looking for garbage
        multiprocessing.set_start_method("fork", force=True)  # Cython's processes take over the option
        Options.buffer_max_dims = 2  # the least that Cython takes; a slice is passed by value, with so many dimensions
        from Cython.Build import cythonize  # reads the option

        newest = max(Path(one).stat().st_mtime for one in ("setup.py", "levels.py"))
        force = not Path(SHARED).exists() or Path(SHARED).stat().st_mtime < newest
        for of_lmq, shared in ((True, None), (False, "core._cython_shared")):  # lmq must not import core
            ours = [one for one in self.extensions if one.name.startswith("lmq.") == of_lmq]
            how = {"compiler_directives": DIRECTIVES, "shared_utility_qualified_name": shared}
            written = cythonize(ours, force=force, nthreads=self.parallel, quiet=True, **how)
            for one, c in zip(ours, written, strict=True):
                one.sources, one.depends = c.sources, c.depends


if __name__ == "__main__":
    sources = [] if CHOICE == "none" else [SHARED, *COMPILED]
    how = {one: {"include_dirs": ["."], "extra_compile_args": level_of(one) + CFLAGS} for one in sources}
    modules = [Extension(one.rpartition(".")[0].replace("/", "."), [one], **how[one]) for one in sources]
    in_parallel = {"build_ext": {"parallel": len(os.sched_getaffinity(0))}}
    setup(ext_modules=modules, cmdclass={"build_ext": BuildExt}, options=in_parallel)
