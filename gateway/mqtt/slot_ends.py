"""How subscriptions of durable sessions give up their slots: when that is durable, and nothing of theirs is under way.

A client ends a subscription while messages are under way to it. They are brought to their end all the same, also by
the next process, with their packet identifiers: a row in the transaction that ends the subscription says what it was,
and which slots the journals know its messages by. Then that row goes, and then the slots are others'. A process that is
killed before any of these is durable goes on from the step before.

Source: docs/storage-format.md, "Definitions".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from core.errors import DiskFullError, LmqError
from gateway.logs import said
from gateway.mqtt.catch_up import CatchUp, CatchUps
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.packets import LEVEL_5
from gateway.mqtt.replay import is_replay
from gateway.mqtt.session import NO_SLOT, NOTHING_OWED, Ended, Session, Subscription
from gateway.mqtt.session_loader import PlacesTable, TableLike
from gateway.mqtt.session_rows import OF_MQTT_5, REPLAY_OVER, SubscriptionRow, ended_key, pack_ended
from gateway.mqtt.topics import is_shared

LOGGER = logging.getLogger(__name__)

Then = Callable[[], None]


class SlotEnds:
    """Takes slots from subscriptions.

    Args:
        rows: The table of subscriptions that ended while messages were under way.
        places: Where the slots are.
        catch_ups: What is owed of retained messages.
        exact: What is known of messages at QoS 2, by slots.
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(
        self,
        rows: TableLike,
        places: PlacesTable,
        catch_ups: CatchUps,
        exact: ExactJournal,
        when_kept: Callable[[Callable[[LmqError | None], None]], None],
    ) -> None:
        self._rows = rows
        self._places = places
        self._catch_ups = catch_ups
        self._exact = exact
        self._when_kept = when_kept
        self._alone: list[Then] = []  # what follows what `keep_alone` wrote

    def when_ended(self, forgets: Iterable[Then]) -> None:
        """Forget something when its end, which is written, is durable: a process that is killed before has it again.

        A commit may begin at once: what has to be durable with it is written before.
        """
        for forget in forgets:
            self._when_kept(partial(_if_kept, forget))

    def release_old(self, session: Session, slots: tuple[int, ...]) -> None:
        """Let others have the slots of a place that was left, with nothing under way, once that is durable."""
        self.when_ended([partial(self._release, session, slots)])

    def give_back(self, subscription: Subscription, *, stays: bool = False, has_session: bool = True) -> list[Then]:
        """Take a subscription's slots; return what is to be called when no row of it names them any more.

        Args:
            subscription: It ends, or is at QoS 0 from now on.
            stays: Whether it is at QoS 0.
            has_session: Whether its session lives on: what is under way is brought to its end then.
        """
        session, slots = subscription.session, _slots_of(subscription)
        if slots[0] == NO_SLOT:
            return []
        catch_up = session.find_catch_up(subscription.topic_filter)
        if catch_up is not None:
            session.drop_catch_up(catch_up)
        self._exact.expect_end(subscription)
        window = session.window
        is_in_flight = window is not None and window.count_of(subscription.source) > 0
        is_left = has_session and (is_in_flight or (catch_up is not None and len(catch_up.in_flight) > 0))
        gone = session.part(subscription) if stays and is_left else subscription
        subscription.floor_slot = subscription.sent_slot = subscription.retained_slot = NO_SLOT
        if not is_left:
            forgets: list[Then] = [] if catch_up is None else [partial(self._end_catch_up, session, catch_up)]
            return [*forgets, partial(self._release, session, slots)]
        gone.floor_slot, gone.sent_slot, gone.retained_slot = slots
        ended = Ended(gone, catch_up)
        session.keep_ended(ended)
        # what a group sent at QoS 1 goes to its other members
        self._write(gone, [] if window is None or is_shared(gone.topic_filter) else window.once_of(gone.source))
        if stays and not is_in_flight:
            session.free_source(gone)
        return [partial(self._keep, session, ended)]

    def keep_alone(self, subscription: Subscription) -> None:
        """Bring to its end what a subscription has of a group at QoS 1: the group has no member any more.

        Where it went to QoS 0 before, the messages are of the one that it left behind. Followed by `note_alone`, once
        all that ends with the group is written.
        """
        session, window = subscription.session, subscription.session.window
        for source in {window.any_source_of(each) for each in subscription.unacked or ()} if window is not None else ():
            gone = session.sources[source]
            owed = window.once_of(source) if window is not None else []
            if gone is None or not owed:
                continue
            if gone.floor_slot == NO_SLOT:
                if not self._take_slots(gone, min(owed)):
                    continue
                ended = Ended(gone, None)
                session.keep_ended(ended)
                self._alone.append(partial(self._keep, session, ended))
            else:
                self._places.set(gone.floor_slot, min(*owed, self._places.get(gone.floor_slot)))
            self._write(gone, owed)

    def note_alone(self) -> None:
        """Go on with what `keep_alone` wrote when it is durable."""
        alone, self._alone = self._alone, []
        self.when_ended(alone)

    def _take_slots(self, gone: Subscription, floor: int) -> bool:
        """Give a subscription that has none its slots; False where the disk has no room for more."""
        slots: list[int] = []
        try:
            while len(slots) < len(_slots_of(gone)):
                slots.append(self._places.acquire(0 if slots else floor))
        except DiskFullError:
            for slot in slots:
                self._places.release(slot)
            name, client = said(gone.topic_filter), said(gone.session.client_id)
            LOGGER.warning("no room: what is under way comes not again after a start filter=%s client=%s", name, client)
            return False
        gone.floor_slot, gone.sent_slot, gone.retained_slot = slots
        return True

    def _write(self, gone: Subscription, owed: list[int]) -> None:
        row = pack_ended(gone.topic_filter, row_of(gone), owed)
        self._rows.put(ended_key(gone.session.client_id, gone.floor_slot), row)

    def _keep(self, session: Session, ended: Ended) -> None:
        """Go on with what is under way: the end of its subscription is durable."""
        slot = ended.subscription.floor_slot
        if (session.ended or {}).get(slot) is not ended:
            return
        ended.is_kept = True
        self._exact.keep_slot(session, slot)
        if ended.catch_up is not None:
            self._catch_ups.finish(ended.catch_up)
        self.settle(session, slot)

    def settle(self, session: Session, slot: int) -> None:
        """Let go of a subscription that ended, by its first or third slot, if nothing of it is under way any more."""
        ended = (session.ended or {}).get(slot)
        if ended is None:
            return
        catch_up = ended.catch_up
        if catch_up is not None and catch_up.is_over:
            self._end_catch_up(session, catch_up)
        if ended.is_over:
            session.drop_ended(ended)
            self.when_ended(self._forget(session, ended))
        elif ended.is_kept and not ended.has_some:
            self._hold_nothing(session, ended.subscription)

    def _hold_nothing(self, session: Session, gone: Subscription) -> None:
        """Have no messages of its queue be kept for a subscription of which retained messages alone are under way."""
        if self._places.get(gone.floor_slot) < NOTHING_OWED:
            self._exact.forget_slot(session, gone.floor_slot)
            self._places.set(gone.floor_slot, NOTHING_OWED)

    def settle_all(self, session: Session) -> None:
        """Do that for all of a session that was loaded now."""
        for ended in session.all_ended():
            window = session.window
            if window is None or not window.count_of(ended.subscription.source):
                session.free_source(ended.subscription)
            self.settle(session, ended.subscription.floor_slot)

    def end_all(self, session: Session) -> None:
        """Let go of all of a session that ends."""
        for ended in session.all_ended():
            self._exact.expect_end(ended.subscription)
            session.drop_ended(ended)
            forgets = self._forget(session, ended)
            if ended.catch_up is not None:
                forgets.insert(0, partial(self._end_catch_up, session, ended.catch_up))
            self.when_ended(forgets)

    def _forget(self, session: Session, ended: Ended) -> list[Then]:
        """Take the row back; return what gives back its slots when that is durable."""
        gone = ended.subscription
        slots = _slots_of(gone)
        self._rows.delete(ended_key(session.client_id, slots[0]))
        gone.floor_slot = gone.sent_slot = gone.retained_slot = NO_SLOT
        return [partial(self._release, session, slots)]

    def _release(self, session: Session, slots: tuple[int, ...]) -> None:
        """Forget what was sent at QoS 2 from a place, and let others have its slots."""
        self._exact.forget_slot(session, slots[0])
        for slot in slots:
            self._places.release(slot)

    def _end_catch_up(self, session: Session, catch_up: CatchUp) -> None:
        """Forget what was owed."""
        if not catch_up.is_ended:
            self._catch_ups.end(catch_up)
            self._exact.forget_slot(session, catch_up.slot)


def row_of(subscription: Subscription) -> SubscriptionRow:
    """Return what is written down of a subscription."""
    is_over = is_replay(subscription.topic_filter) and not subscription.is_replay
    of_5 = OF_MQTT_5 if subscription.session.level == LEVEL_5 else 0
    options = subscription.options | of_5 | (REPLAY_OVER if is_over else 0)
    row = SubscriptionRow(subscription.qos, *_slots_of(subscription), options, subscription.identifier)
    return row._replace(first_offset=subscription.first_offset, eras=subscription.eras)


def _slots_of(subscription: Subscription) -> tuple[int, int, int]:
    return subscription.floor_slot, subscription.sent_slot, subscription.retained_slot


def _if_kept(then: Then, error: LmqError | None) -> None:
    if error is None:
        then()
