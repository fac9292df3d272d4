"""Compile the modules of the data path; without a C compiler or Cython the product is installed uncompiled.

`LMQ_COMPILE` unset: compile all modules, or none where that fails. `all`: compile them, a failure is an error. `none`:
compile nothing. What `CFLAGS` says comes last.
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

# Plain Python modules with a .pxd beside them, in the order of the layers.
COMPILED = [
    "lmq/remoting/commands.py",
    "lmq/remoting/frames.py",
    "core/cache_budget.py",
    "core/message.py",
    "core/metrics.py",
    "core/envelope.py",
    "core/room.py",
    "core/engine.py",
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
    "core/store/durability.py",
    "core/store/embedded.py",
    "core/lmq/topic_trie.py",
    "core/lmq/expiry.py",
    "core/lmq/router.py",
    "core/lmq/waiters.py",
    "core/pop/changes.py",
    "core/pop/window.py",
    "core/pop/inflight.py",
    "core/pop/journal.py",
    "core/pop/pop_service.py",
    "core/broker.py",
    "gateway/runtime.py",
    "gateway/flush_thread.py",
    "gateway/auth/permissions.py",
    "gateway/net/protocol.py",
    "gateway/net/shares.py",
    "gateway/net/endpoint.py",
    "gateway/net/streams/plain.py",
    "gateway/net/transport.py",
    "gateway/net/layered_transport.py",
    "gateway/mqtt/publish_properties.py",
    "gateway/mqtt/columns.py",
    "gateway/mqtt/codec.py",
    "gateway/mqtt/inflight.py",
    "gateway/mqtt/publish_encoder.py",
    "gateway/mqtt/events.py",
    "gateway/mqtt/connection.py",
    "gateway/mqtt/publishing.py",
    "gateway/mqtt/session.py",
    "gateway/mqtt/feeds.py",
    "gateway/mqtt/delivery.py",
    "gateway/mqtt/services.py",
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
    "gateway/amqp/shared_queue.py",
    "gateway/amqp/consumer.py",
    "gateway/amqp/consuming.py",
    "gateway/amqp/publishing.py",
    "gateway/amqp/handler.py",
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
    "auto_pickle": False,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "show_performance_hints": bool(os.environ.get("LMQ_COMPILE")),  # for developers
}
CFLAGS = [
    "-O2",
    "-g0",
    "-Werror=sign-compare",
    "-Werror=shift-count-overflow",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",  # such as a typed method taken as a value
    "-Wno-maybe-uninitialized",  # of what Cython itself writes, as the next
    "-Wno-stringop-overflow",
    *os.environ.get("CFLAGS", "").split(),
]
SHARED = "core._cython_shared"  # what Cython writes for memory views, once for all modules
SOURCES = {SHARED: SHARED.replace(".", "/") + ".c"} | {path[:-3].replace("/", "."): path for path in COMPILED}
CHOICE = os.environ.get("LMQ_COMPILE", "")
UNCOMPILED = "core/uncompiled.txt"  # read by gateway/compiled.py


class AllOrNothing(build_ext):
    """Builds every module or none: compiled modules reach into each other."""

    def run(self) -> None:
        """Have Cython write the C of what changed, compile it, and remove compiled modules of other builds."""
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
        self.note(reason)
        built = {Path(self.get_ext_filename(extension.name)) for extension in self.extensions}
        for package in {path.partition("/")[0] for path in COMPILED}:
            for other in set(Path(package).rglob("*.so")) - built:
                other.unlink()

    def note(self, reason: str) -> None:
        """Write down why nothing is compiled, for the gateway to say at its start; empty where it is."""
        record = Path("" if self.inplace else self.build_lib) / UNCOMPILED
        record.parent.mkdir(parents=True, exist_ok=True)
        if reason:
            record.write_text(f"at the set-up: {reason}\n")
        else:
            record.unlink(missing_ok=True)

    def write_c(self) -> None:
        """Have Cython write the C of each module that is newer than its C."""
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        if not CHOICE and shutil.which(compiler.split()[0]) is None:
            raise OSError("no C compiler found")
        from Cython.Compiler import Options

        Options.buffer_max_dims = 2  # the least that Cython takes; a slice is passed by value, with so many dimensions
        from Cython.Build import cythonize  # reads the option

        shared = Path(SOURCES[SHARED])
        of_lmq = [extension for extension in self.extensions if extension.name.startswith("lmq.")]
        others = [extension for extension in self.extensions if not extension.name.startswith("lmq.")]
        for extensions, shares in ((of_lmq, None), (others, SHARED)):  # lmq must not import core
            written = cythonize(
                [Extension(extension.name, [SOURCES[extension.name]], include_dirs=["."]) for extension in extensions],
                compiler_directives=DIRECTIVES,
                quiet=True,
                nthreads=self.parallel or 0,
                force=not shared.exists() or shared.stat().st_mtime < Path(__file__).stat().st_mtime,
                shared_utility_qualified_name=shares,
            )
            for extension, one in zip(extensions, written, strict=True):
                extension.sources, extension.depends = one.sources, one.depends


if __name__ == "__main__":  # Cython's processes import this file
    modules = SOURCES if CHOICE != "none" else ()
    extensions = [Extension(name, [], extra_compile_args=CFLAGS, include_dirs=["."]) for name in modules]
    setup(ext_modules=extensions, cmdclass={"build_ext": AllOrNothing})
