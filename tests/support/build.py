"""Which build the tests run on."""

from __future__ import annotations

import core.message

IS_COMPILED = not core.message.__file__.endswith(".py")
