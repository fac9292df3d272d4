"""Settings of what one user may have and do, on all of the user's connections together."""

from __future__ import annotations

from pydantic import BaseModel

from core.settings import Limit


class UserLimitsSettings(BaseModel, frozen=True, extra="forbid"):
    """What one user may have and do, on all connections together, whatever their doors; 0: any number."""

    connections_max: Limit = 0  # open at once
    channels_max: Limit = 0  # of AMQP, open at once
    messages_rate: Limit = 0  # messages a second that the user may publish; more are read later, or refused at RocketMQ
    bytes_rate: Limit = 0  # bytes of bodies a second that the user may publish; likewise
    messages_out_rate: Limit = 0  # messages a second that the user is sent; more wait where they are
    bytes_out_rate: Limit = 0  # bytes of bodies a second that the user is sent; more wait where they are
    connects_rate: Limit = 0  # logins a second, at all doors; more are refused
