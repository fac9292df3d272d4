"""Run `main` of a program of this folder as a module, so that its tasks have the names that workers know."""

from __future__ import annotations

import importlib
import sys

importlib.import_module(sys.argv.pop(1)).main()
