"""Messages that are moved from one AMQP queue to another, and dead letters that go back to where they died."""

from __future__ import annotations

from typing import Annotated, Literal

from pamqp.commands import Basic
from pydantic import BaseModel, Field

from gateway.admin.login import Member
from gateway.admin.management.amqp_link import AmqpLink, open_link
from gateway.admin.management.any_names import Publish
from gateway.admin.management.failures import bad_request
from gateway.admin.management.listing import Item
from gateway.admin.management.places import get_queue, get_vhost
from gateway.admin.ours.letters_back import send_letters_back
from gateway.admin.ours.origins import UNKNOWN, find_origin, strip_deaths
from gateway.admin.routes import Routes
from gateway.admin.view import View
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.queues import VirtualHost

MOVING = Routes()
COUNT_MAX = 10_000  # messages of one request; chosen: it is open until they were moved
REASONS_MAX = 20  # told; chosen: what a page can show
COPIES = ("CC", "BCC")  # would send copies elsewhere
Name = Annotated[str, Field(min_length=1, max_length=255)]


class MoveBody(BaseModel):
    """What is moved; without a destination each dead letter goes to the queue where it died first.

    At the door `rocketmq` the source is a topic of dead letters, `%DLQ%group`; without a destination its letters go to
    the group's retry topic, for that group alone, else to a topic, for all groups that consume it.
    """

    door: Literal["amqp", "rocketmq"] = "amqp"
    vhost: str = DEFAULT_VHOST
    source: Name
    destination: Name | None = None
    count: Annotated[int, Field(ge=1, le=COUNT_MAX)] = 1_000


@MOVING.post("/move")
async def move_messages(view: View, member: Member, wanted: MoveBody) -> Item:
    """Move messages, each only done with when it is stored anew: one that fails is in both queues, none in neither.

    One that cannot go where it is to go stays, and the others go on: `left` are so many, and `reasons` says why. 400:
    all stay. None goes anywhere else by its headers `CC` and `BCC`, which it has no more.
    """
    if wanted.door == "rocketmq":
        if wanted.vhost != DEFAULT_VHOST:
            raise bad_request("RocketMQ's topics are of the virtual host '/'")
        return await send_letters_back(view, member, wanted.source, wanted.destination, wanted.count)
    vhost = get_vhost(view, wanted.vhost)
    most = get_queue(vhost, wanted.source).pop.ready_count
    if wanted.destination is not None:
        get_queue(vhost, wanted.destination)
    async with open_link(view, member, wanted.vhost) as link:
        move = _Move(link, vhost, wanted, member.user)
        while most and move.moved < wanted.count and move.left < COUNT_MAX and await move.go_on():
            most -= 1
    if move.left and not move.moved:
        raise bad_request(f"moved 0, {move.left} left: {', '.join(move.reasons)}")
    return {"moved": move.moved, "left": move.left, "reasons": list(move.reasons)}


class _Move:
    """One errand: messages that stay are held until its link ends, so each is seen once; then they are ready again."""

    def __init__(self, link: AmqpLink, vhost: VirtualHost, wanted: MoveBody, user: str) -> None:
        self._link = link
        self._vhost = vhost
        self._wanted = wanted
        self._user = user
        self.moved = 0
        self.left = 0
        self.reasons: dict[str, None] = {}  # a set in order

    async def go_on(self) -> bool:
        """Move the next message, or leave it; return False where there is none."""
        found = await self._link.get(self._wanted.source, no_ack=False)
        if found is None:
            return False
        assert isinstance(found.method, Basic.GetOk)
        headers = found.properties.headers or {}
        destination = self._wanted.destination
        if destination is None:
            destination = find_origin(self._vhost.name, found.origin)
            headers = strip_deaths(headers)
        found.properties.headers = {name: value for name, value in headers.items() if name not in COPIES} or None
        reason = self._find_hurdle(destination, found.properties.user_id)
        if not reason and not await self._link.publish(
            Publish(0, "", destination or "", True),  # noqa: FBT003
            found.properties,
            found.body,
        ):
            reason = f"no queue '{destination}'"
        if reason:
            self.left += 1
            if len(self.reasons) < REASONS_MAX:
                self.reasons[reason] = None
            return True
        self._link.tell(Basic.Ack(found.method.delivery_tag or 0))
        self.moved += 1
        return True

    def _find_hurdle(self, destination: str | None, user_id: str | None) -> str:
        """Return why a message cannot go to a queue, empty: nothing is in its way."""
        if destination is None:
            return UNKNOWN
        if self._vhost.find(destination) is None:
            return f"no queue '{destination}'"
        if user_id and user_id != self._user:
            return f"user_id is '{user_id}', and only that user may publish so"
        return ""
