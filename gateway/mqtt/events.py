"""What a connection reports besides packets: runs of packets that lie decoded in the door's shared columns."""

from __future__ import annotations

from enum import Enum

from gateway.mqtt.packets import Packet


class Run(Enum):
    """A run of equal packets; it is valid until the next event of any connection of the door is asked for."""

    PUBLISHES = 1  # in `RunColumns.batch`
    ACKS = 2  # the first `ack_count` of `RunColumns.packet_ids`
    PINGS = 3  # `RunColumns.ping_count` of them; the connection has the answers


PUBLISHES = Run.PUBLISHES  # what the data path compares with: an enumeration's members are slow to look up
ACKS = Run.ACKS
PINGS = Run.PINGS

Event = Packet | Run
