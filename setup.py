"""Compile the modules of the data path; without a C compiler or Cython the product is installed uncompiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError
from setuptools.modified import newer

# Plain Python modules with a .pxd beside them, in the order of the layers.
COMPILED = [
    "core/message.py",
    "core/metrics.py",
    "core/room.py",
    "core/store/record.py",
    "core/store/record_walk.py",
    "core/store/record_write.py",
    "core/store/head_index.py",
    "core/store/journal.py",
    "core/store/queue_names.py",
    "core/store/position_marks.py",
    "core/store/sealed_index.py",
    "core/store/segments.py",
    "core/store/dispatch_set.py",
    "core/store/commit_log.py",
    "core/store/queue_index.py",
    "core/store/queue_reader.py",
    "core/store/message_store.py",
    "core/store/dispatcher.py",
    "core/lmq/topic_trie.py",
    "core/lmq/expiry.py",
    "core/lmq/router.py",
    "core/lmq/waiters.py",
    "core/pop/changes.py",
    "core/pop/window.py",
    "core/pop/inflight.py",
    "core/pop/journal.py",
    "core/pop/pop_service.py",
    "core/durability.py",
    "core/broker.py",
    "gateway/runtime.py",
    "gateway/giving_way.py",
    "gateway/flush_thread.py",
    "gateway/auth/permissions.py",
    "gateway/net/protocol.py",
    "gateway/net/transport.py",
    "gateway/mqtt/codec.py",
    "gateway/mqtt/inflight.py",
    "gateway/mqtt/publish_encoder.py",
    "gateway/mqtt/connection.py",
    "gateway/mqtt/publishing.py",
    "gateway/mqtt/session.py",
    "gateway/mqtt/feeds.py",
    "gateway/mqtt/delivery.py",
    "gateway/mqtt/handler.py",
    "gateway/amqp/field_table.py",
    "gateway/amqp/property_block.py",
    "gateway/amqp/stored_properties.py",
    "gateway/amqp/codec.py",
    "gateway/amqp/delivery_codec.py",
    "gateway/amqp/unacked.py",
    "gateway/amqp/heartbeat.py",
    "gateway/amqp/channel.py",
    "gateway/amqp/events.py",
    "gateway/amqp/connection.py",
    "gateway/amqp/output.py",
    "gateway/amqp/blocking.py",
    "gateway/amqp/pace.py",
    "gateway/amqp/shared_queue.py",
    "gateway/amqp/consumer.py",
    "gateway/amqp/consuming.py",
    "gateway/amqp/publishing.py",
    "gateway/amqp/handler.py",
    "gateway/rocketmq/commands.py",
    "gateway/rocketmq/fields.py",
    "gateway/rocketmq/codec.py",
    "gateway/rocketmq/send_run.py",
    "gateway/rocketmq/send_codec.py",
    "gateway/rocketmq/answer_codec.py",
    "gateway/rocketmq/connection.py",
    "gateway/rocketmq/pull.py",
    "gateway/rocketmq/handler.py",
    "spark_analytics/property_scan.py",
]
DIRECTIVES = {
    "language_level": "3",
    "annotation_typing": False,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    # For who compiles by hand, not for who installs.
    "show_performance_hints": bool(os.environ.get("LMQ_COMPILE")) and not os.environ.get("LMQ_PROFILE"),
}
# A message that comes alone finds the processor's predictions gone, so each jump costs it some 15 ns: calls inside a
# module are written out.
INLINING = [
    "-finline-functions",
    "--param=max-inline-insns-auto=400",
    "--param=max-inline-insns-single=1000",
    "--param=inline-unit-growth=100",
    "--param=large-function-growth=1000",
    "--param=inline-min-speedup=1",
]
CFLAGS = [
    "-O2",
    *INLINING,
    "-g0",
    "-Werror=sign-compare",
    "-Werror=shift-count-overflow",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",  # such as a typed method taken as a value
    "-Wno-maybe-uninitialized",  # of what Cython itself writes, as the next
    "-Wno-stringop-overflow",
]
# Cython 3.3 forgets these two in a module whose memory views are shared and that appends to a bytearray.
if sys.version_info >= (3, 13):
    CFLAGS += [f"-D__Pyx_{name}_CRITICAL_SECTION=Py_{name}_CRITICAL_SECTION" for name in ("BEGIN", "END")]
else:
    CFLAGS += ["-D__Pyx_BEGIN_CRITICAL_SECTION(o)={", "-D__Pyx_END_CRITICAL_SECTION()=}"]
# LMQ_PROFILE, for `make optimise`: a build that counts what runs, and one that is laid out by what was counted.
PROFILE = os.environ.get("LMQ_PROFILE", "")
PROFILE_CFLAGS = {
    "": [],
    "write": ["-fprofile-generate", "-fprofile-update=atomic"],
    "read": ["-fprofile-use", "-Wmissing-profile", "-Wno-array-bounds"],
}
UNWATCHED = "spark_analytics."  # no load of `make bench` runs it, and what a profile does not see is made small
PROFILE_LDFLAGS = {"": [], "write": ["-fprofile-generate"], "read": []}
OPTIMISED = Path("build", "optimised")  # is there while the last build was laid out by a profile: benchmarks say so
SLICE_DIMENSIONS = 2  # the least that Cython takes; a slice is passed by value, with so many dimensions
SHARED = "core._cython_shared"  # memory views, once for all modules: 2x less to compile
LIBRARY = "core._compiled"  # what is compiled of all modules: one message's way lies in fewer pages of one library
PARTS = Path("build", "parts")  # the C that is written here
LIBRARY_SOURCE = """\
#include <Python.h>

{declarations}

static const struct {{
    const char *module;
    const char *capsule;
    PyObject *(*init)(void);
}} parts[] = {{
{rows}
}};

static int add_parts(PyObject *library)
{{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {{
        PyObject *capsule = PyCapsule_New((void *)parts[i].init, parts[i].capsule, NULL);
        if (capsule == NULL || PyObject_SetAttrString(library, parts[i].module, capsule) < 0) {{
            Py_XDECREF(capsule);
            return -1;
        }}
        Py_DECREF(capsule);
    }}
    return 0;
}}

static PyModuleDef_Slot slots[] = {{{{Py_mod_exec, add_parts}}, {{0, NULL}}}};
static struct PyModuleDef library = {{PyModuleDef_HEAD_INIT, "{library}", NULL, 0, NULL, slots}};

PyMODINIT_FUNC PyInit_{name}(void)
{{
    return PyModuleDef_Init(&library);
}}
"""
MODULE_SOURCE = """\
#include <Python.h>

PyMODINIT_FUNC PyInit_{name}(void)
{{
    PyObject *library = PyImport_ImportModule("{library}");
    PyObject *(*init)(void) = NULL;
    if (library != NULL)
        init = (PyObject * (*)(void)) PyCapsule_Import("{library}.{part}", 0);
    Py_XDECREF(library);
    return init == NULL ? NULL : init();
}}
"""
UNCOMPILED = "lmq-gateway: {reason}: going on uncompiled; everything works, several times slower"


class AllOrNothing(build_ext):
    """Builds every module or none, in one library: compiled modules reach into each other."""

    def run(self) -> None:
        """Build; without a C compiler leave no compiled module behind."""
        try:
            super().run()
        except (BaseError, CCompilerError, OSError) as error:
            if os.environ.get("LMQ_COMPILE"):
                raise
            print(UNCOMPILED.format(reason=f"no module could be compiled ({error})"), file=sys.stderr)
            self.extensions.clear()
            drop_built()

    def build_extensions(self) -> None:
        """Compile all modules into one library, and a file for each module that has Python find it in there."""
        if PROFILE == "read" and not any(Path(self.build_temp).rglob("*.gcda")):
            sys.exit("lmq-gateway: no profile is there to read: build with LMQ_PROFILE=write, and run that")
        OPTIMISED.unlink(missing_ok=True)
        *modules, library = self.extensions
        with ThreadPoolExecutor(self.parallel or 1) as threads:
            library.depends = library.extra_objects = list(threads.map(self.compile_module, modules))
        library.sources = [library_source(library.name, modules)]
        library.extra_link_args = PROFILE_LDFLAGS[PROFILE]
        for module in modules:
            module.sources = [module_source(module.name)]
        super().build_extensions()
        if PROFILE == "read":
            OPTIMISED.touch()

    def compile_module(self, module: Extension) -> str:
        """Compile a module where its C is newer, and return its object file.

        What LMQ_PROFILE asks for is added here, not before, as Cython writes the flags that it sees into the C that
        it makes, and a profile is of one C file, to the line.
        """
        profile = [] if module.name.startswith(UNWATCHED) else PROFILE_CFLAGS[PROFILE]
        (built,) = self.compiler.object_filenames(module.sources, output_dir=self.build_temp)
        if self.force or newer(module.sources[0], built):
            self.compiler.compile(
                module.sources,
                output_dir=self.build_temp,
                macros=[(f"PyInit_{last_of(module.name)}", f"lmq_init_{part_of(module.name)}")],
                extra_postargs=CFLAGS + profile,
            )
        return str(built)


def last_of(module: str) -> str:
    """Return the last part of a module's name."""
    return module.rpartition(".")[2]


def part_of(module: str) -> str:
    """Return the name of a module in the library."""
    return module.replace(".", "_")


def written(module: str, text: str) -> str:
    """Write the C of a part of the build, where it isn't there yet, and return its path."""
    path = PARTS / (module.replace(".", "/") + ".c")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return str(path)


def library_source(library: str, modules: list[Extension]) -> str:
    """Write the C that offers each module of the library by a capsule, and return its path."""
    parts = [part_of(module.name) for module in modules]
    text = LIBRARY_SOURCE.format(
        library=library,
        name=last_of(library),
        declarations="\n".join(f"extern PyObject *lmq_init_{part}(void);" for part in parts),
        rows="\n".join(f'    {{"{part}", "{library}.{part}", lmq_init_{part}}},' for part in parts),
    )
    return written(library, text)


def module_source(module: str) -> str:
    """Write the C of the file that Python opens for a module, and return its path."""
    return written(module, MODULE_SOURCE.format(library=LIBRARY, name=last_of(module), part=part_of(module)))


def built_files(*endings: str) -> list[Path]:
    """Return what is there of an earlier build, by the endings of its names."""
    stems = map(Path, [*COMPILED, SHARED.replace(".", "/"), LIBRARY.replace(".", "/")])
    return [built for stem in stems for ending in endings for built in stem.parent.glob(f"{stem.stem}{ending}")]


def drop_built() -> None:
    """Leave no compiled module of an earlier build behind: they would not know the sources of today."""
    for built in built_files(".*.so"):
        built.unlink()


def drop_outdated() -> None:
    """Leave nothing behind that an earlier version of this file built: modules of other options do not fit ours."""
    changed = Path(__file__).stat().st_mtime
    for built in built_files(".c", ".*.so"):
        if built.stat().st_mtime < changed:
            built.unlink()


def compiler() -> str:
    """Return the program that compiles C, as setuptools choose it."""
    command: str = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return command.split(maxsplit=1)[0]


def has_compiler() -> bool:
    """Return whether the C compiler that would be called is there; without it nothing need be made ready for it."""
    return shutil.which(compiler()) is not None


def check_profile() -> None:
    """End here where LMQ_PROFILE asks for what this compiler cannot do: another than GCC writes other profiles."""
    if PROFILE not in PROFILE_CFLAGS:
        sys.exit(f"lmq-gateway: LMQ_PROFILE is `write` or `read`, not `{PROFILE}`")
    if PROFILE:
        command = [compiler(), "-v"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr  # noqa: S603 - the build's own
        if "gcc version" not in said:
            sys.exit(f"lmq-gateway: LMQ_PROFILE needs GCC; {compiler()} is another compiler")


def extensions() -> list[Extension]:
    """Return the extension modules to build, as LMQ_COMPILE says.

    Unset: all of them, or none where that fails. `all`: all of them, and a failure is an error. `none`. Or the paths
    of some, with commas between: a library of no others, to try the build itself.
    """
    choice = os.environ.get("LMQ_COMPILE", "")
    if choice == "none":
        return []
    if not choice and not has_compiler():
        print(UNCOMPILED.format(reason="no C compiler found"), file=sys.stderr)
        drop_built()
        return []
    check_profile()
    try:
        from Cython.Compiler import Options

        Options.buffer_max_dims = SLICE_DIMENSIONS  # read when what follows is imported
        from Cython.Build import cythonize
    except ImportError:
        if choice:
            raise
        print(UNCOMPILED.format(reason="no Cython found"), file=sys.stderr)
        return []
    wanted = COMPILED if choice in {"", "all"} else choice.split(",")
    if wanted is COMPILED:
        drop_outdated()
    modules = [Extension(path.removesuffix(".py").replace("/", "."), [path]) for path in wanted]
    modules.append(Extension(SHARED, [SHARED.replace(".", "/") + ".c"]))
    modules = cythonize(modules, compiler_directives=DIRECTIVES, quiet=True, shared_utility_qualified_name=SHARED)
    return [*modules, Extension(LIBRARY, [])]


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing})
