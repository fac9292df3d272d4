"""The source files of the product, for the tests about the source."""

from __future__ import annotations

import ast
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
    """Return the list COMPILED of setup.py, without running it."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "COMPILED":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py has no list COMPILED")
