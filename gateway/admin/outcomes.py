"""What became of a message that a reader is done with, as far as the gateway can tell without a write for each.

Sources: the endings that were noted since the start (`core/pop/endings.py`), the log, where dead letters name the
message that they are of, and looks at places every few seconds. What had not been taken when the gateway started ended
since. Of what was done before, AMQP queues tell all, and a dead letter tells; else it is said in which ways it may
have ended.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from core.message import StoredBatch
from core.properties import LETTER_OF, decode_properties
from core.stage import Stage
from gateway.admin.asking import ask, open_queue, read_on
from gateway.admin.steps import Steps
from gateway.admin.stored import StoredRecord
from gateway.admin.trail import NOWHERE, Passed
from gateway.admin.transaction_ends import find_transaction_end
from gateway.admin.view import AdminView
from gateway.amqp.deaths import last_death
from gateway.amqp.stored_properties import StoredProperties
from gateway.inventory import AWAY, SENT, SUBSCRIBED_LATER, FateEntry, text_of

READ_COUNT = 64  # dead letters read together, each with its whole body
LOOKED_AT_MAX = 20_000  # messages of one queue among which a dead letter is looked for; chosen: somebody waits for it
NOT_KEPT = "which of these is not known: it was done before the gateway started, or longer ago than endings are kept"
NEVER_KEPT = "which of these is not kept"
ONE_WAY = "by the rules of its reader as they are now it can have ended in no other way"
DEAD_LETTER = "dead letter"
OWN = "not sent: it is the client's own"
_ORIGIN = b"ORIGIN_MESSAGE_ID"  # RocketMQ's: address, port, place
_OFFSET_ID = re.compile(rb"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56}")
_WORDS = {
    "expired": "expired",
    "rejected": "rejected",
    "maxlen": "dropped: its queue was full",
    "queue_full": "dropped: too many waited for it",
    "slow_subscriber": "dropped: it read too slowly",
    "delivery_limit": "given up: it was given back too often",
    "too_large_for_subscriber": "dropped: it was too large for its client",
    "not_permitted": "dropped: its client may no longer read it",
    "passed_over": "acknowledged, or passed over as its group was sent on",
    "began_behind": SUBSCRIBED_LATER,
    "began_unknown": "acknowledged, not wanted by its filter or from before its group began",
    "handed_over": "handed over at QoS 2 to the session of one member",
    "session_ended": "lost: the session that had it at QoS 2 ended, and no other member may get it",
}
Item = dict[str, Any]


class Noted(Protocol):
    """How a message ended that was not acknowledged, as the core has noted it."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def from_ms(self) -> int:
        """It was not before."""

    @property
    def until_ms(self) -> int:
        """It was not after."""


class Letter(NamedTuple):
    """A dead letter of a message, or what RocketMQ sends a group again."""

    place: int
    stored_ms: int
    queue: bytes
    reason: str  # why the message died; empty where the letter does not say

    def tell(self) -> Item:
        """Return it as it is told."""
        told = {"id": str(self.place), "light_queue": text_of(self.queue), "stored_at_ms": self.stored_ms}
        return {**told, "reason": self.reason or None}


class Outcomes:
    """Tells of one message.

    Args:
        view: The gateway.
        stored: The message.
    """

    def __init__(self, view: AdminView, stored: StoredRecord) -> None:
        self._view = view
        self._stored = stored
        self._letters: dict[tuple[bytes, str], Letter | None] = {}
        self._reader = StoredProperties()

    async def tell(self, fate: FateEntry) -> Item:
        """Return what a reader made of it: `outcome` is None while it is not done; times are 0 where not known.

        `became` is the message that a half message was stored as when its transaction ended.
        """
        told = await self._tell_reader(fate)
        if not fate.done_queue or fate.stage is not Stage.DONE:
            return told
        stored = self._stored
        end = await find_transaction_end(
            self._view.broker, fate.done_queue, stored.queue_offset, stored.properties, stored.store_ms
        )
        if end is None:
            return told
        moments = {"from_ms": end.at_ms, "until_ms": end.at_ms}
        return {**told, **moments, "outcome": end.outcome, "note": end.note, "became": end.became or None}

    async def _tell_reader(self, fate: FateEntry) -> Item:
        """Return this as the places of readers, what was noted and dead letters say it."""
        told: Item = {"outcome": None, "from_ms": 0, "until_ms": 0, "by": fate.holder, "by_is_sure": bool(fate.holder)}
        told |= {"letter": None, "became": None}
        if fate.stage is not Stage.DONE:
            return told
        done_as = self._done_as(fate)
        passed = next((self._view.trail.find(end[:2], end[2], self._stored.store_ms) for end in fate.ends), NOWHERE)
        ending = self._find_ending(fate)
        is_kept = self._is_kept(fate, passed)
        letter = None
        # A look before the start may be one at an earlier reader of the name, which ended.
        begins = passed.from_ms > self._view.since_ms or (is_kept and self._knows_beginning(fate))
        or_else = [way for way in fate.or_else if way != SUBSCRIBED_LATER or not begins]
        is_known = done_as in {OWN, AWAY, SUBSCRIBED_LATER} or (is_kept and not or_else)
        if ending is not None or not is_known or not done_as.startswith(("acknowledged", SENT)):
            letter = await self._find_letter(fate, 0 if ending is None else ending.from_ms)
        elif fate.kind == "group" and fate.letters:  # RocketMQ's clients send back what they cannot use, and go on
            letter = await self._find_letter(fate, 0)
        if ending is not None:
            told["outcome"] = _WORDS.get(ending.reason, ending.reason)
            if told["outcome"] != SUBSCRIBED_LATER:
                told["from_ms"], told["until_ms"] = max(ending.from_ms, self._stored.store_ms), ending.until_ms
        elif letter is not None:
            told["outcome"] = _WORDS.get(letter.reason, letter.reason) or DEAD_LETTER
            told["from_ms"] = told["until_ms"] = letter.stored_ms
        elif is_known:
            told["outcome"] = done_as
            if done_as not in {AWAY, SUBSCRIBED_LATER}:
                told["from_ms"], told["until_ms"], told["by"] = passed
                told["from_ms"] = max(passed.from_ms, self._stored.store_ms)
                told["by"] = fate.holder or passed.by
        else:
            if is_kept:
                told.update(_tell_ways([done_as, *or_else], [fate.note], NEVER_KEPT))
            else:
                told.update(self._tell_possible(fate, [done_as, *fate.may_be, *or_else], passed.until_ms))
            told["from_ms"], told["until_ms"] = self._stored.store_ms, passed.until_ms
        return {**told, "letter": None if letter is None else letter.tell()}

    def _find_ending(self, fate: FateEntry) -> Noted | None:
        """Return how the message ended for a reader, where it was not acknowledged and that was noted."""
        broker, is_at_0 = self._view.broker, self._stored.is_at_qos_0
        if fate.is_lasting:
            all_found = (broker.lasting_endings.find(*end, is_at_0=is_at_0) for end in fate.ends)
        else:
            all_found = (broker.pop.endings.find(*end) for end in fate.ends)
        return next((found for found in all_found if found is not None), None)

    def _is_kept(self, fate: FateEntry, passed: Passed) -> bool:
        """Return whether it is known how the message ended for a reader: what was not noted was acknowledged."""
        broker, store_ms = self._view.broker, self._stored.store_ms
        since_start = store_ms > self._view.since_ms or fate.is_fresh or passed.from_ms > self._view.since_ms
        if fate.is_lasting:
            lasting = broker.lasting_endings
            is_since = since_start or store_ms > lasting.since_ms
            return is_since and all(lasting.is_kept(*end, store_ms) for end in fate.ends)
        return (since_start or fate.is_told) and all(broker.pop.endings.is_kept(*end) for end in fate.ends)

    def _knows_beginning(self, fate: FateEntry) -> bool:
        """Return whether it was noted where a reader began, if it began behind the message."""
        is_group = fate.kind == "group" and fate.is_lasting
        return is_group and self._stored.store_ms > self._view.broker.lasting_endings.since_ms

    def _done_as(self, fate: FateEntry) -> str:
        """Return what done is for a reader where this message did not end in another way."""
        if fate.skips_own and fate.done_as != SUBSCRIBED_LATER and self._stored.mqtt_client == fate.reader.encode():
            return OWN
        return (self._stored.is_at_qos_0 and fate.done_at_0) or fate.done_as

    def _tell_possible(self, fate: FateEntry, ways: list[str], done_by_ms: int) -> Item:
        """Return how a message may have ended of which that is not kept, and what is sure.

        Args:
            fate: How far its reader is.
            ways: In which ways it may have ended, but for its time.
            done_by_ms: When a look at places found it done, 0 where none did.
        """
        notes = [fate.note]
        lives_ms = min((ms for ms in (self._stored.ttl_ms, fate.ttl_ms) if ms >= 0), default=-1)
        if lives_ms >= 0:
            ends_ms, now_ms = self._stored.store_ms + lives_ms, time.time_ns() // 1_000_000
            ways += ["expired"] if ends_ms <= (done_by_ms or now_ms) else []
            notes.append(f"its time {'was' if ends_ms <= now_ms else 'is'} over at {tell_moment(ends_ms)}")
        if fate.letters:
            notes.append("no dead letter of it is found")
        return _tell_ways(ways, notes, NOT_KEPT)

    async def _find_letter(self, fate: FateEntry, from_ms: int) -> Letter | None:
        """Return the message's dead letter, where one of the queues that may hold it has it."""
        for queue in fate.letters:
            key = queue, fate.died_in
            if key not in self._letters:
                self._letters[key] = await self._look_in(*key, max(self._stored.store_ms, from_ms))
            found = self._letters[key]
            if found is not None:
                return found
        return None

    async def _look_in(self, queue: bytes, died_in: str, from_ms: int) -> Letter | None:
        broker = self._view.broker
        queue_ref = broker.find_queue(queue)
        if queue_ref < 0:
            return None
        await open_queue(broker, queue_ref)
        offset = max(await ask(lambda then: broker.find_offset(queue_ref, from_ms, then)), broker.min_offset(queue_ref))
        batch, steps, looked_at = StoredBatch(READ_COUNT), Steps(), 0
        while looked_at < LOOKED_AT_MAX:
            count = await read_on(broker, queue_ref, offset, batch)
            if not count:
                return None
            for i in range(count):
                encoded = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
                if letter_of(encoded) == self._stored.place and batch.physical_offset[i] != self._stored.place:
                    reason, where = self._death_of(batch, i)
                    if not died_in or where == died_in:
                        return Letter(batch.physical_offset[i], batch.store_ms[i], queue, reason)
            looked_at, offset = looked_at + count, batch.next_offset
            await steps.rest()
        return None

    def _death_of(self, batch: StoredBatch, i: int) -> tuple[str, str]:
        """Return why and where a letter's message died, as the letter says; empty for those of RocketMQ."""
        self._reader.read(batch.buf, batch.properties_start[i], batch.properties_end[i])
        block = self._reader.amqp_block(batch.buf)
        reason, where = (b"", b"") if block is None else last_death(block)
        return text_of(reason), text_of(where)


def _tell_ways(ways: list[str], notes: list[str], why: str) -> Item:
    """Return how a message ended, or may have, and what else is to be known.

    Args:
        ways: In which ways; the first may be two in one text.
        notes: What else is to be known, some of it empty.
        why: It is not known which way it was.
    """
    if len(ways) > 1:
        ways = [*ways[0].split(", or "), *ways[1:]]
    outcome = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])} or {ways[-1]}"
    return {"outcome": outcome, "note": "; ".join(filter(None, [*notes, ONE_WAY if len(ways) == 1 else why]))}


def tell_moment(at_ms: int) -> str:
    """Return a moment as text, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def letter_of(encoded: bytes) -> int | None:
    """Return the place of the message that a record with these properties is a dead letter of; None: it is none."""
    if LETTER_OF not in encoded and _ORIGIN not in encoded:
        return None
    properties = decode_properties(encoded)
    place, origin = properties.get(LETTER_OF, b"").partition(b".")[0], properties.get(_ORIGIN, b"")
    if place.isdigit():
        return int(place)
    return int(origin[-16:], 16) if _OFFSET_ID.fullmatch(origin) else None
