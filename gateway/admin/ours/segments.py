"""The files of the log: how old and how large each is, and what keeps those whose time is over."""

from __future__ import annotations

from fastapi import Response

from core.log_file import LogFile
from gateway.admin.login import Monitor
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.ours.light_queues import name_of
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps
from gateway.admin.view import AdminView, View
from gateway.retention import LogFiles

SEGMENTS = Routes()
NAMED_MAX = 3  # queues that a file is kept for; chosen: what a row can show
LOOKS_MAX = 1_000  # at some hundred queues each, for one answer: the oldest files have them
Holders = dict[int, list[int]]  # queues by a file's first place


@SEGMENTS.get("/segments")
async def list_segments(view: View, monitor: Monitor, asked: Asked) -> Response:
    """The files of the log, the oldest first; nothing of the log is read for it.

    `due` are those past their time or over the size when retention last looked; those with something that is still
    needed (`needed`: entries of light queues) are `held`, for the queues in `held_for` among others, three at most.
    Moments are null where they are not known. `/api/lmq/held` knows which clients and queues have not read for long.
    """
    del monitor
    files = view.log_files
    if files is None:
        return await answer_list(asked, _kind_of(view, {}), ())
    return await answer_list(asked, _kind_of(view, await _find_holders(files)), files.tell())


async def _find_holders(files: LogFiles) -> Holders:
    """Return what files are kept for, as far as so many looks tell it."""
    steps, looks, found = Steps(), 0, Holders()
    for file in files.tell():
        await steps.rest()
        if not file.is_held:
            continue
        named: list[int] = []
        for queue_ref in files.holders_of(file.base):
            looks += 1
            if looks > LOOKS_MAX:
                return found
            if queue_ref is not None:
                named.append(queue_ref)
            if len(named) == NAMED_MAX:
                break
            await steps.rest()
        found[file.base] = named
    return found


def _kind_of(view: AdminView, holders: Holders) -> Kind[LogFile]:
    return Kind(
        name=lambda file: file.name,
        describe=lambda file: _tell(view, file, holders.get(file.base)),
        figures={
            "first_offset": lambda file: file.base,
            "bytes": lambda file: file.disk_bytes,
            "due": lambda file: file.is_due,
            "held": lambda file: file.is_held,
            "needed": lambda file: file.needed,
        },
    )


def _tell(view: AdminView, file: LogFile, holders: list[int] | None) -> Item:
    return {
        "name": file.name,
        "first_offset": file.base,
        "size": file.size,
        "bytes": file.disk_bytes,
        "first_written_at_ms": file.first_ms,
        "last_written_at_ms": file.last_ms,
        "newest": file.is_newest,
        "due": file.is_due,
        "held": file.is_held,
        "needed": file.needed,
        "held_for": None if holders is None else [_name(view, queue_ref) for queue_ref in holders],
    }


def _name(view: AdminView, queue_ref: int) -> Item:
    door, name, vhost = name_of(view.broker, view.broker.queue_key(queue_ref))
    return {"door": door, "name": name, "vhost": vhost}
