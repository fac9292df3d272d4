"""A queue that is there holds to other policies from now on."""

from __future__ import annotations

import logging

from core.errors import QueueLimitError
from gateway.amqp.policies import Ruling
from gateway.amqp.refusals import Refusals
from gateway.amqp.shared_queue import SharedQueue

LOGGER = logging.getLogger(__name__)


def hold_queue_to(queue: SharedQueue, ruling: Ruling, refusals: Refusals) -> bool:
    """Let a queue hold to what policies say now; return whether anything else holds for it."""
    before, was_watched = queue.terms, queue.is_watched
    queue.hold_to(ruling)
    if queue.terms == before or not queue.is_open:  # a queue takes the terms of the moment when it opens
        return queue.terms != before
    if (queue.terms.bytes_max >= 0) != (before.bytes_max >= 0):
        queue.reopen()
    try:
        refusals.renew(queue)
    except QueueLimitError as error:  # what it has no room for is lost, or goes on, as without the policy
        LOGGER.warning("a queue cannot refuse messages although it is full queue=%s reason=%s", queue.name, error)
    queue.watch()
    if was_watched and not queue.is_watched and not queue.consumers:
        queue.stop()
    return True
