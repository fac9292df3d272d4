"""Ways of messages that are published: by choices, past queues that are full, and to the levels of priorities."""

from __future__ import annotations

from core.message import PublishBatch
from core.queues.crossroads import Crossroads
from core.queues.diversion import MakeRoute
from core.queues.full_queues import FullQueues
from core.queues.levels import Levels


class Detours:
    """The queues that are asked about a message before it is appended.

    Args:
        make_route: Makes the route of a topic, its queue and prefix to light queues.
    """

    __slots__ = ("crossroads", "full", "levels")

    def __init__(self, make_route: MakeRoute) -> None:
        self.crossroads = Crossroads(make_route)
        self.full = FullQueues(make_route)
        self.levels = Levels(make_route)

    def divert(self, batch: PublishBatch, now_ms: int) -> None:
        """Give messages that come now the routes that these queues say, until `restore`.

        An error leaves the batch as it was.
        """
        try:
            self.crossroads.divert(batch, now_ms)
            self.full.divert(batch)
            self.levels.divert(batch)
        except BaseException:
            self.restore(batch)
            raise

    def restore(self, batch: PublishBatch) -> None:
        """Give a batch that was appended the routes back that its front knows."""
        self.levels.restore(batch)
        self.full.restore(batch)
        self.crossroads.restore(batch)
