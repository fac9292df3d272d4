"""What is compiled, and how: each module with C types in a .pxd beside it; all_or_nothing.py says where it fails."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.modified import newer_group

sys.path.insert(0, str(Path(__file__).resolve().parent))  # where pip runs this file, its folder is not on the path
from all_or_nothing import CHOICE, AllOrNothing
from levels import arguments_of

PACKAGES = ("core", "gateway", "lmq", "spark_analytics")
DECLARED = [path for package in PACKAGES for path in sorted(Path(package).rglob("*.pxd"))]
# Inline C takes the place of its module in those that are compiled, and is no module itself.
COMPILED = [str(path.with_suffix(".py")) for path in DECLARED if "cdef inline" not in path.read_text(encoding="utf-8")]
HEADERS = [str(path) for package in PACKAGES for path in sorted(Path(package).rglob("*.h"))]
SHARED = "core/_cython_shared.c"  # what Cython writes for memory views, once for all modules but those of lmq
DIRECTIVES = {"language_level": "3", "annotation_typing": False, "auto_pickle": False, "boundscheck": True}
DIRECTIVES |= {"binding": False, "emit_code_comments": False}  # nothing asks for signatures; less C
DIRECTIVES |= {"wraparound": False, "initializedcheck": False, "show_performance_hints": bool(CHOICE)}


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

        force = newer_group(["setup.py", "levels.py"], SHARED)
        for of_lmq, shared in ((True, None), (False, "core._cython_shared")):  # lmq must not import core
            ours = [one for one in self.extensions if one.name.startswith("lmq.") == of_lmq]
            how = {"compiler_directives": DIRECTIVES, "shared_utility_qualified_name": shared}
            written = cythonize(ours, force=force, nthreads=self.parallel, quiet=True, **how)
            for one, c in zip(ours, written, strict=True):
                one.sources = c.sources
        # The longest first, so that both cores have work to the end.
        self.extensions.sort(key=lambda one: Path(one.sources[0]).stat().st_size, reverse=True)


if __name__ == "__main__":
    sources = [] if CHOICE == "none" else [SHARED, *COMPILED]
    names = {one: one.partition(".")[0].replace("/", ".") for one in sources}
    modules = [Extension(names[one], [one], depends=HEADERS, extra_compile_args=arguments_of(one)) for one in sources]
    options = {"build_ext": {"include_dirs": ".", "parallel": len(os.sched_getaffinity(0))}}
    setup(ext_modules=modules, cmdclass={"build_ext": BuildExt}, options=options)
