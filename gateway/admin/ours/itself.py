"""The gateway itself: the last lines of its log, and the settings that it goes by."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from gateway.admin.login import Administrator
from gateway.admin.management.listing import Item
from gateway.admin.view import View
from gateway.logs import recent_lines
from gateway.settings_text import settings_text

ITSELF = APIRouter()


@ITSELF.get("/logs")
async def list_log_lines(administrator: Administrator, since: Annotated[int, Query(ge=0)] = 0) -> Item:
    """The last lines of the log, those only that came after the first `since` ones; `written` is to be asked with next.

    Where something else takes the log than stderr there are none.
    """
    del administrator
    lines, written = recent_lines()
    fresh = written - since if since <= written else len(lines)  # it was started again
    return {"lines": lines[max(len(lines) - fresh, 0) :], "written": written}


@ITSELF.get("/settings")
async def show_settings(view: View, administrator: Administrator) -> Item:
    """The settings in force, as a file that `lmq serve --config` takes; secrets are hidden."""
    del administrator
    return {"text": settings_text(view.settings())}
