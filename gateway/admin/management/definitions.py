"""Files of definitions, as RabbitMQ exports and imports them."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import chain

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from core.errors import LmqError
from gateway.admin.login import Administrator
from gateway.admin.management.definitions_export import HOST_SECTIONS, SECTIONS, Told, tell_definitions
from gateway.admin.management.definitions_plan import DefinitionsError, Plan
from gateway.admin.management.definitions_text import (
    DefinitionsSplitter,
    DefinitionsTextError,
    Member,
    write_section,
)
from gateway.admin.management.definitions_users import USER_SECTIONS, UserPlan, tell_users
from gateway.admin.management.failures import bad_request, busy
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import JSON, Item
from gateway.admin.management.names import LIKE
from gateway.admin.management.places import get_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps, let_go, walk
from gateway.admin.view import AdminView, View
from gateway.version import VERSION

DEFINITIONS = Routes()


@DEFINITIONS.get("/definitions")
async def export(view: View, administrator: Administrator) -> Response:
    """Everything durable of AMQP, as a file that RabbitMQ imports."""
    del administrator
    return await _export(
        chain(tell_users(view.authenticator.stored, view.authenticator.quotas), tell_definitions(view.vhosts)), SECTIONS
    )


@DEFINITIONS.get("/definitions/{vhost}")
async def export_of(view: View, administrator: Administrator, vhost: PathName) -> Response:
    """What is durable in one virtual host, which the file does not name."""
    del administrator
    return await _export(tell_definitions([get_vhost(view, vhost)]), HOST_SECTIONS)


@DEFINITIONS.post("/definitions")
async def import_all(view: View, administrator: Administrator, request: Request) -> Item:
    """Make what a file asks for that is not there; nothing at all where something in it is wrong."""
    del administrator
    return await _import(view, request, None)


@DEFINITIONS.post("/definitions/{vhost}")
async def import_into(view: View, administrator: Administrator, request: Request, vhost: PathName) -> Item:
    """Make in one virtual host what a file asks for that is not there."""
    del administrator
    return await _import(view, request, get_vhost(view, vhost).name)


async def _export(items: Iterable[Told | None], sections: Sequence[str]) -> Response:
    found: dict[str, list[str]] = {section: [] for section in sections}
    async for section, item in walk(items):
        if section in found:
            if sections is HOST_SECTIONS:
                del item["vhost"]
            found[section].append(json.dumps(item))
    return StreamingResponse(_write(found), media_type=JSON)


async def _write(found: dict[str, list[str]]) -> AsyncIterator[str]:
    """Give the parts of a file, as they are sent."""
    steps = Steps()
    head = {"rabbit_version": LIKE, "rabbitmq_version": LIKE, "product_name": "LMQ Gateway", "product_version": VERSION}
    yield "{\n" + ",\n".join([f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()])
    for section, items in found.items():
        yield ",\n"
        for part in write_section(section, items):
            yield part
            await steps.rest()
        await let_go(items)
    yield "\n}\n"


async def _import(view: AdminView, request: Request, only: str | None) -> Item:
    """Import a file; the answer says how much, and what was left out."""
    plan = Plan(view.vhosts, only)
    users = UserPlan(view.authenticator.stored, view.authenticator.quotas, view.authenticator.is_of_settings)
    try:
        await _check(plan, users, request, only)
        view.broker.check_room(_bytes_of(request))  # a row takes no more than what asks for it
        await _do(plan.carry_out())
        await _do(users.carry_out())
        await keep(view.broker)
    except LmqError as error:
        raise busy(f"not all was made: {error}") from error
    finally:
        await _do(plan.let_go())
    return {"imported": {**users.counts, **plan.counts}, "not_imported": [*users.left_out, *plan.left_out]}


async def _check(plan: Plan, users: UserPlan, request: Request, only: str | None) -> None:
    sections: dict[str, list[object]] = {}
    try:
        async for section, item in _read(request):
            sections.setdefault(section, []).append(item)
        said = {name: sections.pop(name, []) for name in USER_SECTIONS} if only is None else {}
        await _do(plan.check(sections))
        await _do(users.check(said, plan.knows_vhost))
    except (DefinitionsTextError, DefinitionsError, UnicodeDecodeError) as error:
        raise bad_request(str(error)) from error
    finally:
        for items in sections.values():
            await let_go(items)


async def _read(request: Request) -> AsyncIterator[Member]:
    """Give the members of the object that a request has, as they come."""
    decoder, splitter = codecs.getincrementaldecoder("utf-8")(), DefinitionsSplitter()
    async for data in request.stream():
        splitter.feed(decoder.decode(data))
        async for member in walk(splitter.found()):
            yield member
    splitter.feed(decoder.decode(b"", final=True), is_last=True)
    async for member in walk(splitter.found()):
        yield member


def _bytes_of(request: Request) -> int:
    """Return how long a request is; 0 where it does not say so ahead."""
    said = request.headers.get("content-length", "")
    return int(said) if said.isdigit() else 0


async def _do(work: Iterable[None]) -> None:
    steps = Steps()
    for _ in work:
        await steps.rest()
