"""Settings of what the whole gateway takes, all doors together, and of its caches."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from core.cache_budget import CACHE_BYTES_MAX
from core.settings import LIMIT_MAX, MIB, Limit
from gateway.settings.penalties import Network


class AddressLimitsSettings(BaseModel, frozen=True, extra="forbid"):
    """Limits of one client address, at all doors; the first 64 bits of an IPv6 address count. 0: no limit."""

    connections_max: Limit = 0  # open connections of one address, at MQTT, AMQP and RocketMQ together; more are refused
    connects_rate: Limit = 0  # connections a second from one address; more are refused
    messages_rate: Limit = 0  # messages a second that one address publishes; more are read later
    bytes_rate: Limit = 0  # bytes of bodies a second that one address publishes; more are read later
    messages_out_rate: Limit = 0  # messages a second that one address is sent; more wait in their queues
    bytes_out_rate: Limit = 0  # bytes of bodies a second that one address is sent; more wait in their queues
    # networks without these limits, such as "192.0.2.7/32" of a router with many devices behind it
    exempt: tuple[Network, ...] = ()


class LimitsSettings(BaseModel, frozen=True, extra="forbid"):
    """Limits of the whole gateway, all doors together; above them new work is refused first."""

    # memory of the process, without mapped files, above which publishers wait and new connections are refused.
    # None: six tenths of the machine's or container's; 0: no limit
    memory_bytes_max: Limit | None = None
    connections_max: Limit = 0  # open connections at all doors together; 0: as many as file descriptors allow
    # let the system write a core dump when the gateway crashes; it holds passwords, keys and messages
    core_dumps: bool = False
    address: AddressLimitsSettings = AddressLimitsSettings()


class CacheSettings(BaseModel, frozen=True, extra="forbid"):
    """Caches: routes of topics, checked topics, targets of publishers."""

    # size of all caches together; the longest unused entries are dropped first
    bytes_max: Annotated[int, Field(ge=MIB, le=LIMIT_MAX)] = CACHE_BYTES_MAX
