"""Settings of the audit log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from core.settings import LIMIT_MAX
from gateway.events import KINDS, QUIET_KINDS


def _check_kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"is not an event: events are {', '.join(KINDS)}")
    return name


KindName = Annotated[str, AfterValidator(_check_kind)]


class AuditSettings(BaseModel, frozen=True, extra="forbid"):
    """The audit log, a file of JSON lines: logins, refusals, and changes with their users."""

    file: Path | None = None  # path of the audit log; none: no audit log
    # size of one file; a full one becomes FILE.1, and FILE.1 becomes FILE.2
    bytes_max: Annotated[int, Field(ge=4_096, le=LIMIT_MAX)] = 16 * 1024 * 1024
    files_max: Annotated[int, Field(ge=1, le=1_000)] = 8  # number of files that are kept, the current one included
    leave_out: tuple[KindName, ...] = QUIET_KINDS  # events that are not written
