"""Where a message goes that waits for its moment, and which callers may read it there."""

from __future__ import annotations

from typing import NamedTuple

from core.properties import WAITING_AT, WAITING_FOR
from core.schedule.near_slot import REAL_TOPIC
from gateway.admin.login import Caller
from gateway.admin.view import AdminView
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.delays import read_place
from gateway.amqp.exchanges import exchange_right
from gateway.auth.credentials import ADMINISTRATOR
from gateway.inventory import text_of
from gateway.rocketmq.name_rights import may_read


class Target(NamedTuple):
    """Where one goes: one of `topic`, `rocketmq_topic`, or `exchange` in `vhost` by `keys`. All empty: not known."""

    topic: bytes = b""
    rocketmq_topic: bytes = b""
    vhost: str = DEFAULT_VHOST
    exchange: str = ""
    keys: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # exchanges at which it waits, too

    @property
    def text(self) -> str:
        """It, as people of its door call it: a topic, or a virtual host but the first, an exchange and routing keys."""
        if self.keys:
            where = () if self.vhost == DEFAULT_VHOST else (self.vhost,)
            return " ".join((*where, ",".join((self.exchange, *self.others)), *self.keys))
        return text_of(self.topic or self.rocketmq_topic)

    def may_read(self, view: AdminView, caller: Caller) -> bool:
        """Return whether a caller that logged in may read what goes there: as a subscriber, or with a binding."""
        if ADMINISTRATOR in caller.tags:
            return True
        may = caller.may
        if self.topic:
            return may.may_subscribe(self.topic)
        if self.rocketmq_topic:
            return may_read(may, view.broker.parent_topic, self.rocketmq_topic)
        vhost = self.vhost.encode()
        exchanges = [exchange_right(name).encode() for name in (self.exchange, *self.others)]
        return (
            bool(self.keys)
            and may.may_enter(vhost)
            and any(
                may.may_read(vhost, exchange)
                and all(may.may_read_key(vhost, exchange, key.encode()) for key in self.keys)
                for exchange in exchanges
            )
        )


def find_target(said: dict[bytes, bytes]) -> Target:
    """Return where a message with these properties goes."""
    if WAITING_AT not in said:
        return Target(topic=said.get(WAITING_FOR, b""), rocketmq_topic=said.get(REAL_TOPIC, b""))
    try:
        place = read_place(said[WAITING_AT])
    except ValueError:
        return Target()
    return Target(
        vhost=place.vhost, exchange=place.exchanges[0], others=tuple(place.exchanges[1:]), keys=tuple(place.keys)
    )
