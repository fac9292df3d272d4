"""Keeps passwords, keys and messages out of core dumps: of a gateway that crashes its memory is not written."""

from __future__ import annotations

import logging
import resource
from pathlib import Path

LOGGER = logging.getLogger(__name__)

_FILTER = Path("/proc/self/coredump_filter")  # which memory a dump has, also one that is piped to a program
_NO_MEMORY = "0"


def forbid_core_dumps() -> None:
    """Have the system write no core file of this process, and none of its memory where a program takes the dump."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        _FILTER.write_text(_NO_MEMORY, encoding="ascii")
    except OSError as error:
        LOGGER.warning("core dumps may have memory in them file=%s error=%s", _FILTER, error.strerror)
