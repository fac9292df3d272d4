"""Compile the modules of the data path; without a C compiler or Cython the product is installed uncompiled."""

from __future__ import annotations

import os
import sys

from setuptools import Extension, setup

# Plain Python modules with a .pxd beside them, in the order of the layers.
COMPILED = [
    "core/message.py",
    "core/lmq/topic_trie.py",
    "gateway/amqp/field_table.py",
    "gateway/amqp/property_block.py",
    "gateway/amqp/codec.py",
    "gateway/amqp/unacked.py",
]
DIRECTIVES = {
    "language_level": "3",
    "annotation_typing": False,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
}
CFLAGS = ["-O2", "-g0", "-Werror=sign-compare", "-Werror=shift-count-overflow"]


def extensions() -> list[Extension]:
    """Return the extension modules to build: all of them, or those that LMQ_COMPILE names (commas between)."""
    if os.environ.get("LMQ_COMPILE") == "none":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("lmq-gateway: no Cython found, installing uncompiled (slower)", file=sys.stderr)
        return []
    wanted = [path for path in os.environ.get("LMQ_COMPILE", "").split(",") if path] or COMPILED
    modules = [
        Extension(
            path.removesuffix(".py").replace("/", "."),
            [path],
            extra_compile_args=CFLAGS,
            optional=True,
        )
        for path in wanted
    ]
    built: list[Extension] = cythonize(modules, compiler_directives=DIRECTIVES, quiet=True)
    return built


setup(ext_modules=extensions())
