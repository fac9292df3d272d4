"""What a session is given again since a start no longer counts as ended: lineage tells how it ends then.

Other messages ended as they did, also behind the place of a subscription: at QoS 2 those that were released.
"""

from __future__ import annotations

from core.broker import Broker
from gateway.mqtt.inflight import EXACT_SENT, ONCE_SENT
from gateway.mqtt.session import NO_SLOT, Session, Subscription
from gateway.mqtt.topics import is_shared


def take_back_endings(broker: Broker, session: Session) -> None:
    """Take back how messages ended that a session which was just loaded is given again.

    Its subscriptions read on from their places, but for what was sent at QoS 2; what is in the window is sent again,
    also of subscriptions that ended. Shared filters are the group's, and nobody is told what became of a replay.
    """
    endings = broker.lasting_endings
    if not endings.readers:
        return
    for one in session.subscriptions.values():
        if one.floor_slot != NO_SLOT and one.group is None and not one.is_replay:
            sent = sorted(offset for offset in one.done_before or () if offset >= one.position)
            endings.trim((broker.queue_key(one.queue_ref), session.client_id), one.position, sent)
    for subscription, offsets in _sent_again(session).items():
        endings.take_back((broker.queue_key(subscription.queue_ref), session.client_id), sorted(offsets))


def _sent_again(session: Session) -> dict[Subscription, set[int]]:
    """Return which messages of each subscription are sent again out of the window."""
    found: dict[Subscription, set[int]] = {}
    window = session.window
    if window is None:
        return found
    for number in range(window.tail, window.head):
        source = window.source_of(number)
        subscription = session.sources[source] if source >= 0 else None  # retained messages have none
        if subscription is None or is_shared(subscription.topic_filter):
            continue
        if window.state_of(number) in {ONCE_SENT, EXACT_SENT}:
            found.setdefault(subscription, set()).add(window.offset_of(number))
    return found
