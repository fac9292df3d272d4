"""Settings of what one user may have and do, on all of the user's connections together."""

from __future__ import annotations

from pydantic import BaseModel

from core.settings import Limit


class UserLimitsSettings(BaseModel, frozen=True, extra="forbid"):
    """Limits of one user, over all its connections at all doors; 0: no limit."""

    connections_max: Limit = 0  # open connections of the user
    channels_max: Limit = 0  # open AMQP channels of the user
    messages_rate: Limit = 0  # messages a second that the user may publish; more are read later, or refused at RocketMQ
    # bytes of bodies a second that the user may publish; more are read later, or refused at RocketMQ
    bytes_rate: Limit = 0
    messages_out_rate: Limit = 0  # messages a second that the user is sent; more wait in their queues
    bytes_out_rate: Limit = 0  # bytes of bodies a second that the user is sent; more wait in their queues
    connects_rate: Limit = 0  # logins a second, at all doors; more are refused
