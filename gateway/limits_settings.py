"""Settings of what the whole gateway takes, all doors together, and of its caches."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from core.cache_budget import CACHE_BYTES_MAX
from core.settings import LIMIT_MAX, MIB, Limit
from gateway.penalty_settings import Network


class AddressLimitsSettings(BaseModel, frozen=True, extra="forbid"):
    """What one address may do, all doors together; of IPv6 its first 64 bits count. 0: any number."""

    connections_max: Limit = 0  # open at once from it, at MQTT, AMQP and RocketMQ together; more are refused
    connects_rate: Limit = 0  # connections a second that come from it; more are refused
    messages_rate: Limit = 0  # messages a second that it publishes; more are read later
    bytes_rate: Limit = 0  # bytes of bodies a second that it publishes; more are read later
    messages_out_rate: Limit = 0  # messages a second that it is sent; more wait where they are
    bytes_out_rate: Limit = 0  # bytes of bodies a second that it is sent; more wait
    exempt: tuple[Network, ...] = ()  # networks without these limits, such as "10.0.0.0/8" of a router with many behind


class LimitsSettings(BaseModel, frozen=True, extra="forbid"):
    """What the whole gateway takes, all doors together; with more, new work is shed first."""

    # of its own memory, without files that are mapped; with more, publishers are held back and newcomers refused.
    # None: six tenths of what the machine or the container has; 0: any
    memory_bytes_max: Limit | None = None
    connections_max: Limit = 0  # open at once, all doors together; 0: as descriptors allow
    # let the system write the memory of a gateway that crashes: passwords, keys and messages are in it
    core_dumps: bool = False
    address: AddressLimitsSettings = AddressLimitsSettings()


class CacheSettings(BaseModel, frozen=True, extra="forbid"):
    """What is kept in memory only to be quick: routes of topics, checked topics, targets of publishers."""

    # of all caches together; what nobody asked for goes
    bytes_max: Annotated[int, Field(ge=MIB, le=LIMIT_MAX)] = CACHE_BYTES_MAX
