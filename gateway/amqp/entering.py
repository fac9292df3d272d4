"""Which virtual host a client may open, and how many channels."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from pamqp.commands import Connection

from gateway.amqp.errors import AmqpError
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.queues import Resident, VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.virtual_hosts import VirtualHosts
from gateway.auth.credentials import Identity
from gateway.auth.user_quotas import UserQuotas, is_taken
from gateway.net.protocol import Transport


class Entrant(Resident, Protocol):
    """A connection that wants to enter one."""

    @property
    def transport(self) -> Transport:
        """Its output."""

    @property
    def output(self) -> ConnectionOutput:
        """What it writes to, which has its channels."""


def enter(vhosts: VirtualHosts, name: str, connection: Entrant, identity: Identity, quotas: UserQuotas) -> VirtualHost:
    """Return the virtual host of that name, which the connection is in from now on; it counts to its user's `quotas`.

    Raises:
        AmqpError: NOT_ALLOWED: it is not there, not for this user, or it or the user has as many connections as may be.
    """
    found = vhosts.find(name)
    index = Connection.Open.index
    if found is None:
        raise AmqpError(ReplyCode.NOT_ALLOWED, f"vhost {name} not found", index)
    if not identity.may.may_enter(name.encode()):
        reason = f"access to vhost '{name}' refused for user '{identity.user}'"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason, index, denied=f"vhost '{name}'")
    limit = found.profile.connections_max
    if is_taken(found.connections, limit):
        reason = f"access to vhost '{name}' refused for user '{identity.user}': connection limit ({limit}) is reached"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason, index)
    if connection.transport.conn_id:  # else of the admin API, which does not count
        over = quotas.enter(identity.user, connection)
        if over is not None:
            reason = f"connection refused for user '{identity.user}': {over}"
            by = f"{'connects-rate' if over.is_rate else 'max-connections'}={over.limit}"
            raise AmqpError(ReplyCode.NOT_ALLOWED, reason, index, denied=f"vhost '{name}'", by=by)
        if connection.output.connection is not None:
            connection.output.connection.check_channel = partial(check_channels, quotas, identity.user)
    found.connections.add(connection)
    return found


def check_channels(quotas: UserQuotas, user: str) -> None:
    """Check that a user may have one more channel.

    Raises:
        AmqpError: NOT_ALLOWED: on all connections together there are as many as may be.
    """
    limit = quotas.find(user).channels_max
    if 0 <= limit <= quotas.count(user, _count_channels):
        reason = f"number of channels opened for user '{user}' has reached the maximum allowed user limit of ({limit})"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason)


def _count_channels(seat: object) -> int:
    """Return how many channels a connection has, 0 at another door."""
    output = getattr(seat, "output", None)
    return 0 if output is None or output.connection is None else len(output.connection.channels)
