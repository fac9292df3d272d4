"""Rules: those of the settings are told, those of the data folder are set, moved and removed here."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel

from gateway.admin.login import Administrator
from gateway.admin.management.failures import CHANGED, bad_request, failed, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Beside, Item, Kind, answer_list
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.auth.rule_book import RulesError
from gateway.auth.stored_rules import NAME_BYTES_MAX, RULES_MAX
from gateway.settings.rules import RuleSettings

RULES = Routes()
ORDER = "order"  # in which they are asked


class MoveBody(BaseModel):
    """Where a rule is to stand: before another one of the data folder; None: last."""

    before: str | None = None


@RULES.get("/rules")
async def list_rules(view: View, administrator: Administrator, asked: Asked) -> Response:
    """The rules in the order in which they are asked, first those of the settings; `default` is what no rule is for.

    Without a page they are `rules`, of a page `items`.
    """
    del administrator
    settings = view.settings().auth
    ours = [_tell(f"auth.rules[{i}]", rule, of_settings=True) for i, rule in enumerate(settings.rules)]
    stored = [_tell(rule.name, rule.said, of_settings=False) for rule in view.authenticator.rules.stored]
    numbered = list(enumerate([*ours, *stored]))
    return await answer_list(asked.sorted_by(ORDER), KIND, numbered, Beside({"default": settings.default}, "rules"))


@RULES.put("/rules/{name}", status_code=201, response_class=Response, responses=CHANGED)
async def put_rule(
    view: View,
    administrator: Administrator,
    name: PathName,
    said: RuleSettings,
    before: Annotated[str | None, Query(max_length=NAME_BYTES_MAX)] = None,
) -> Response:
    """Set a rule, at once in force: 201, or 204 where it was there. It stands last, where it stood, or before one."""
    del administrator
    stored = view.authenticator.rules.stored
    if not 0 < len(name.encode()) <= NAME_BYTES_MAX:
        raise bad_request(f"the name of a rule has 1 to {NAME_BYTES_MAX} bytes")
    if before is not None:
        _check_there(view, before)
    is_there = stored.has(name)
    if not is_there and len(stored) >= RULES_MAX:
        raise bad_request(f"there are {RULES_MAX} rules already")
    stored.put(name, said, before)
    await _keep(view)
    return Response(status_code=204 if is_there else 201)


@RULES.delete("/rules/{name}", status_code=204)
async def delete_rule(view: View, administrator: Administrator, name: PathName) -> None:
    """Remove a rule; clients that may read less then are disconnected."""
    del administrator
    _check_there(view, name)
    view.authenticator.rules.stored.delete(name)
    await _keep(view)


@RULES.post("/rules/{name}/move", status_code=204)
async def move_rule(view: View, administrator: Administrator, name: PathName, said: MoveBody) -> None:
    """Have a rule asked before another one, or last."""
    del administrator
    _check_there(view, name)
    if said.before is not None:
        _check_there(view, said.before)
    view.authenticator.rules.stored.move(name, said.before)
    await _keep(view)


async def _keep(view: AdminView) -> None:
    """Wait until a change is durable, and in force: a right that was taken is gone when the answer comes."""
    await keep(view.broker)
    try:
        await view.authenticator.book.whole()
    except RulesError as error:
        raise failed(str(error)) from error


def _check_there(view: AdminView, name: str) -> None:
    if not view.authenticator.rules.stored.has(name):
        raise not_found(f"no rule '{name}' in the data folder")


def _tell(name: str, said: RuleSettings, *, of_settings: bool) -> Item:
    return {"name": name, "of_settings": of_settings, "text": str(said), **said.model_dump(mode="json")}


KIND: Kind[tuple[int, Item]] = Kind(
    name=lambda one: str(one[1]["name"]), describe=lambda one: one[1], figures={ORDER: lambda one: one[0]}
)
