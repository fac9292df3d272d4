"""The gateway itself: its log and how much it says, the settings that it goes by, and its retention."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from gateway.admin.login import Administrator, Looker
from gateway.admin.management.listing import Item
from gateway.admin.routes import Routes
from gateway.admin.view import View
from gateway.logs import change_level, recent_lines, told_levels
from gateway.settings.text import settings_table, settings_text

ITSELF = Routes()


@ITSELF.get("/caller")
async def show_caller(looker: Looker) -> Item:
    """The caller and its tags, also one that did not log in: the name is empty then."""
    return {"name": looker.user, "tags": list(looker.tags)}


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
    """The settings in force: `text` is a file that `lmq serve --config` takes; secrets are hidden."""
    del administrator
    settings = view.settings()
    return {"text": settings_text(settings), "settings": settings_table(settings)}


class LevelBody(BaseModel):
    """How much a logger says: `default` is as much as the one above it, of the whole what the settings say."""

    level: Literal["debug", "info", "warning", "error", "default"]
    logger: Annotated[str, Field(max_length=200, pattern=r"^[\w.]*$")] = ""


@ITSELF.get("/log-levels")
async def list_log_levels(administrator: Administrator) -> Item:
    """The level of the log: `level`, and single loggers with another one."""
    del administrator
    level, loggers = told_levels()
    return {"level": level, "loggers": loggers}


@ITSELF.put("/log-levels")
async def change_log_level(view: View, administrator: Administrator, said: LevelBody) -> Item:
    """Have the log say more or less at once, until the next start or other settings of the log."""
    level = view.settings().log.level if said.level == "default" and not said.logger else said.level
    change_level(said.logger, level)
    return await list_log_levels(administrator)


@ITSELF.post("/retention")
async def run_retention(view: View, administrator: Administrator) -> Item:
    """Let go of what is past its time or over the size now; what takes longer goes on by itself."""
    del administrator
    count = view.broker.retire(view.begin_read(0))
    figures = view.broker.figures()
    kept = view.settings().store.retention
    return {
        "segments": count,
        "log_bytes": figures.log_bytes,
        "log_bytes_punched": figures.log_bytes_punched,
        "age_hours": kept.age_hours,
        "bytes_max": kept.bytes_max,
    }
