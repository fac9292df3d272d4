"""Filters that each client has from its CONNECT on, without asking."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.packets import NO_LOCAL, RETAIN_AS_PUBLISHED
from gateway.mqtt.topics import check_topic_filter, is_shared
from gateway.settings.topic_rules import AutoSubscription

_HANDLING_SHIFT = 4


def auto_filters(settings: tuple[AutoSubscription, ...], client_id: bytes, user: bytes) -> Iterator[tuple[bytes, int]]:
    """Give filter and options of each; one that is no filter with this client's names is left out."""
    for wanted in settings:
        topic_filter = wanted.filter.encode().replace(b"${clientid}", client_id).replace(b"${username}", user)
        options = wanted.qos | wanted.retain_handling << _HANDLING_SHIFT
        options |= RETAIN_AS_PUBLISHED if wanted.retain_as_published else 0
        options |= NO_LOCAL if wanted.no_local and not is_shared(topic_filter) else 0
        try:
            check_topic_filter(topic_filter)
        except MalformedPacketError:
            continue
        yield topic_filter, options
