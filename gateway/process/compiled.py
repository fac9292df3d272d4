"""Finds what an operator should know of the compiled modules: that there are none, and why, or that some are old."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

RECORD = (
    "uncompiled.txt"  # in the folder of `core`: all_or_nothing.py writes the reason there where nothing is compiled
)
OUTDATED_S = 60  # installers write a source and its compiled module in any order, within less


def find_warnings(core_module: ModuleType) -> list[str]:
    """Return what an operator should know: that nothing is compiled, with the cause where it is known, or of old.

    Args:
        core_module: One of the compiled modules, in the folder of `core`.
    """
    path = Path(str(core_module.__file__))
    if path.suffix == ".py":
        return [f"running uncompiled, several times slower: {_find_cause(path)}"]
    outdated = sorted(name for name, module in list(sys.modules.items()) if _is_outdated(name, module))
    if outdated:
        first = f"{len(outdated)} compiled modules are older than their sources, which are not used: {outdated[0]}"
        return [f"{first}; make run compiles them again"]
    return []


def _find_cause(source: Path) -> str:
    others = sorted(path.name for path in source.parent.glob(f"{source.stem}.*.so"))
    if others:
        return f"compiled for another Python, {others[0]} where this one takes {source.stem}{EXTENSION_SUFFIXES[0]}"
    record = source.with_name(RECORD)
    try:
        return record.read_text(encoding="utf-8").strip()
    except OSError:
        return "there are no compiled modules beside the sources; make run compiles them where there is a C compiler"


def _is_outdated(name: str, module: object) -> bool:
    """Return whether a module, if it is ours, was compiled from an older source than the one beside it."""
    if not name.startswith(("core.", "gateway.", "lmq.")):  # others may be anything, without a file or a name
        return False
    path = Path(str(getattr(module, "__file__", None) or ""))
    source = path.with_name(f"{path.name.partition('.')[0]}.py") if path.suffix == ".so" else path
    try:
        return source.stat().st_mtime > path.stat().st_mtime + OUTDATED_S
    except OSError:
        return False
