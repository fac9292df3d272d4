"""The source files of the product, for the tests about the source."""

from __future__ import annotations

import contextlib
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "gateway", "lmq", "spark_analytics")


def _find(pattern, folders):
    return sorted(
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob(pattern)
        if "__pycache__" not in path.parts
    )


PRODUCT_SOURCES = _find("*.py", PACKAGES)
COMPILED_DECLARATIONS = _find("*.pxd", PACKAGES)
TEST_SOURCES = _find("*.py", ("tests",))


def compiled_list():
    """Return the modules that setup.py compiles."""
    with contextlib.chdir(ROOT):
        return runpy.run_path("setup.py")["COMPILED"]
