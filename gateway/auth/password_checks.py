"""Checks passwords: slow checks, a few at once, with a turn for every address.

- An address has one check under way, or a few where checks wait for others. Addresses take turns, and so do the user
  names that one address tries.
- Of the attempts of one address at one user name the newest comes first: a guesser with many always waiting does not
  stand before a right password that comes later.
- After FREE_WRONG_COUNT wrong ones an address rests before its next attempt at that name, twice as long each time.
- An address that guesses is refused for a while: its different wrong passwords count, of signed requests the free
  ones of each name. Attempts that were right before are not refused.
- What was found right or wrong before is answered at its turn without a check, so devices that come back for ever with
  an old password cost nothing but their turn.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from gateway.address import pack_network
from gateway.auth.check_threads import THREADS_MAX, SlowWork
from gateway.auth.digest_memory import DigestMemory
from gateway.auth.penalty_box import PenaltyBox
from gateway.runtime.loop import Clock
from gateway.settings.penalties import PenaltySettings

LOGGER = logging.getLogger(__name__)

WAITING_MAX = 1_024  # attempts; 20 s of checks, so more would not be reached within the time to log in
ANSWERS_MAX = 16  # attempts in one turn of the loop that need no check: what follows a login is dear
FREE_WRONG_COUNT = 5  # wrong passwords of one address at one name before the address rests; chosen: a person's slips
REST_MS = 50  # after one more, then twice as long each time
REST_MS_MAX = 1_000  # a right one that comes meanwhile is to get in well within the time to log in
FORGET_MS = 60_000  # without a wrong one: then the address is as new
LANES_MAX = 8_192  # addresses and names that were wrong lately, about 500 bytes each
RIGHT_BYTES_MAX = 16 * 1024 * 1024  # some 100,000 users
WRONG_BYTES_MAX = 2 * 1024 * 1024  # apart from the right ones, so that guesses push none of those out


class Attempt:
    """One password that waits for its check. `answer` is told True, False, or None where too many wait."""

    __slots__ = ("answer", "check", "checks", "digest", "host", "is_cancelled", "lane")

    def __init__(
        self,
        checks: PasswordChecks,
        host: str,
        digest: bytes,
        check: Callable[[], Any],
        *,
        answer: Callable[[bool | None], None],
        lane: Lane,
    ) -> None:
        self.checks = checks  # where it waits
        self.host = host
        self.digest = digest
        self.check = check  # slow; runs where the work is done
        self.answer = answer
        self.lane = lane
        self.is_cancelled = False


class Lane:
    """What one address tries with one user name."""

    __slots__ = ("address", "is_busy", "is_listed", "is_resting", "name", "waiting", "wrong_at_ms", "wrong_count")

    def __init__(self, address: Address, name: bytes) -> None:
        self.address = address
        self.name = name
        self.waiting: list[Attempt] = []  # the newest last
        self.wrong_count = 0
        self.wrong_at_ms = 0
        self.is_busy = False
        self.is_resting = False
        self.is_listed = False  # among the lanes of its address that are ready


class Address:
    """One address, with its lanes that are ready and all its attempts that wait, the oldest first."""

    __slots__ = ("attempts", "is_listed", "lane_count", "lanes", "network", "running_count")

    def __init__(self, network: bytes) -> None:
        self.network = network
        self.attempts: dict[Attempt, None] = {}
        self.lanes: deque[Lane] = deque()
        self.lane_count = 0
        self.running_count = 0
        self.is_listed = False


class PasswordChecks:
    """All attempts that wait, and what was found out before.

    Args:
        work: Runs the checks.
        clock: Tells when an address was wrong.
        box: Has the addresses that are refused; None: none is.
        running_max: Checks under way.
        of_address_max: Those of one address.
    """

    def __init__(
        self,
        work: SlowWork,
        clock: Clock,
        box: PenaltyBox | None = None,
        *,
        running_max: int = THREADS_MAX,
        of_address_max: int = 1,
    ) -> None:
        self.box = box or PenaltyBox(PenaltySettings(wrong_max=0))
        self._running_max = running_max
        self._of_address_max = of_address_max
        self.right = DigestMemory(RIGHT_BYTES_MAX)
        self.wrong = DigestMemory(WRONG_BYTES_MAX)
        self._work = work
        self._clock = clock
        self._lanes: dict[tuple[bytes, bytes], Lane] = {}  # by address and name; the one wrong longest ago first
        self._addresses: dict[bytes, Address] = {}
        self._ready: deque[Address] = deque()
        self._waiting_count = 0
        self._running_count = 0
        self._answered_count = 0  # in this turn
        self._is_called = False

    def add(
        self, host: str, name: bytes, digest: bytes, check: Callable[[], Any], answer: Callable[[bool | None], None]
    ) -> Attempt:
        """Have a password checked when it is its turn.

        Args:
            host: Where from, an address without its port.
            name: A digest of the user name.
            digest: A keyed digest of user name and password, by which the answer is remembered; empty: it is not.
            check: Says whether it is right; slow.
            answer: Told on the loop, perhaps at once; never after `cancel`.
        """
        lane = self._find_lane(pack_network(host), name)
        attempt = Attempt(self, host, digest, check, answer=answer, lane=lane)
        if self.box.refuses(lane.address.network, self._clock.now_ms()) and not self.right.knows(digest):
            self._maybe_drop(lane)
            self._tell(attempt, is_right=None)
            return attempt
        lane.waiting.append(attempt)
        lane.address.attempts[attempt] = None
        self._waiting_count += 1
        if self._waiting_count > WAITING_MAX:
            self._turn_away()
        self._list(lane)
        self._go_on()
        return attempt

    def cancel(self, attempt: Attempt) -> None:
        """Forget an attempt: its connection is gone. A check under way ends by itself."""
        attempt.is_cancelled = True
        if attempt in attempt.lane.address.attempts:
            self._remove(attempt)

    def _remove(self, attempt: Attempt) -> None:
        attempt.lane.waiting.remove(attempt)
        self._forget_waiting(attempt)
        self._maybe_drop(attempt.lane)

    def _forget_waiting(self, attempt: Attempt) -> None:
        del attempt.lane.address.attempts[attempt]
        self._waiting_count -= 1

    def _turn_away(self) -> None:
        """Refuse the oldest attempt of the address that has most of them waiting."""
        crowded = max(self._addresses.values(), key=lambda address: len(address.attempts))
        oldest = next(iter(crowded.attempts))
        self._remove(oldest)
        self._tell(oldest, is_right=None)

    # Lanes

    def _find_lane(self, network: bytes, name: bytes) -> Lane:
        lane = self._lanes.get((network, name))
        if lane is None:
            lane = self._make_lane(network, name)
        elif lane.wrong_count and self._clock.now_ms() - lane.wrong_at_ms > FORGET_MS:
            lane.wrong_count = 0
        return lane

    def _make_lane(self, network: bytes, name: bytes) -> Lane:
        if len(self._lanes) >= LANES_MAX:
            oldest = next((lane for lane in self._lanes.values() if _is_idle(lane)), None)
            if oldest is not None:
                self._drop(oldest)
        address = self._addresses.get(network)
        if address is None:
            address = self._addresses[network] = Address(network)
        address.lane_count += 1
        lane = self._lanes[network, name] = Lane(address, name)
        return lane

    def _list(self, lane: Lane) -> None:
        """Give a lane its place among those of its address, and the address its place, where they are ready."""
        address = lane.address
        if lane.waiting and not (lane.is_listed or lane.is_resting or lane.is_busy):
            lane.is_listed = True
            address.lanes.append(lane)
        self._list_address(address)

    def _list_address(self, address: Address) -> None:
        if address.lanes and not address.is_listed and address.running_count < self._of_address_max:
            address.is_listed = True
            self._ready.append(address)

    def _maybe_drop(self, lane: Lane) -> None:
        if not lane.wrong_count and _is_idle(lane):
            self._drop(lane)

    def _drop(self, lane: Lane) -> None:
        address = lane.address
        if self._lanes.pop((address.network, lane.name), None) is not None:
            address.lane_count -= 1
            if not address.lane_count:
                del self._addresses[address.network]

    # Turns

    def _go_on(self) -> None:
        """Start what may start; the rest goes on when a check ends, or in the next turn of the loop."""
        while self._ready and self._running_count < self._running_max and not self._is_called:
            address = self._ready.popleft()
            address.is_listed = False
            lane = address.lanes.popleft()
            lane.is_listed = False
            if lane.waiting:
                attempt = lane.waiting.pop()
                self._forget_waiting(attempt)
                self._take(attempt)
            self._list(lane)
            self._maybe_drop(lane)

    def _take(self, attempt: Attempt) -> None:
        lane = attempt.lane
        if self.right.knows(attempt.digest):
            self._note_answered()
            self._tell(attempt, is_right=True)
        elif self.wrong.knows(attempt.digest):
            self._note_answered()
            self._note_wrong(lane)
            self._tell(attempt, is_right=False)
        else:
            self._running_count += 1
            lane.is_busy = True
            lane.address.running_count += 1
            self._work.run(attempt.check, partial(self._finish, attempt))

    def _note_answered(self) -> None:
        """Stop for this turn of the loop where much was answered in it."""
        self._answered_count += 1
        if self._answered_count == 1:
            self._work.call_later(0, self._begin_turn)
        self._is_called = self._answered_count >= ANSWERS_MAX

    def _begin_turn(self) -> None:
        self._answered_count = 0
        self._is_called = False
        self._go_on()

    def _finish(self, attempt: Attempt, is_right: bool | None) -> None:  # noqa: FBT001  # called with what was found
        lane = attempt.lane
        self._running_count -= 1
        lane.is_busy = False
        lane.address.running_count -= 1
        if is_right is not None and attempt.digest:
            (self.right if is_right else self.wrong).add(attempt.digest)
        if is_right is False:
            if attempt.digest or lane.wrong_count < FREE_WRONG_COUNT:
                self.box.note_wrong(lane.address.network, attempt.host, self._clock.now_ms())
            self._note_wrong(lane)
        self._list(lane)
        self._maybe_drop(lane)
        self._go_on()
        self._tell(attempt, is_right=is_right)

    def _note_wrong(self, lane: Lane) -> None:
        lane.wrong_count += 1
        lane.wrong_at_ms = self._clock.now_ms()
        key = (lane.address.network, lane.name)
        self._lanes[key] = self._lanes.pop(key)
        more = lane.wrong_count - FREE_WRONG_COUNT
        if more > 0:
            lane.is_resting = True
            self._work.call_later(find_rest_ms(more), partial(self._end_rest, lane))

    def _end_rest(self, lane: Lane) -> None:
        lane.is_resting = False
        self._list(lane)
        self._go_on()

    @staticmethod
    def _tell(attempt: Attempt, *, is_right: bool | None) -> None:
        if not attempt.is_cancelled:
            try:
                attempt.answer(is_right)
            except Exception:
                LOGGER.exception("an error after a login")


def _is_idle(lane: Lane) -> bool:
    return not (lane.waiting or lane.is_busy or lane.is_resting or lane.is_listed)


def find_rest_ms(wrong_count: int) -> int:
    """Return how long an address rests after so many wrong attempts beyond the free ones."""
    return min(REST_MS << min(wrong_count - 1, 16), REST_MS_MAX)
