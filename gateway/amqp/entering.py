"""Which virtual host a client may open."""

from __future__ import annotations

from pamqp.commands import Connection

from gateway.amqp.errors import AmqpError
from gateway.amqp.queues import Resident, VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.virtual_hosts import VirtualHosts
from gateway.auth.credentials import Identity


def enter(vhosts: VirtualHosts, name: str, connection: Resident, identity: Identity) -> VirtualHost:
    """Return the virtual host of that name, which the connection is in from now on.

    Raises:
        AmqpError: NOT_ALLOWED: it is not there, not for this user, or has as many connections as it may have.
    """
    found = vhosts.find(name)
    index = Connection.Open.index
    if found is None:
        raise AmqpError(ReplyCode.NOT_ALLOWED, f"vhost {name} not found", index)
    if not identity.may.may_enter(name.encode()):
        reason = f"access to vhost '{name}' refused for user '{identity.user}'"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason, index, denied=f"vhost '{name}'")
    limit = found.profile.connections_max
    if 0 <= limit <= len(found.connections):
        reason = f"access to vhost '{name}' refused for user '{identity.user}': connection limit ({limit}) is reached"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason, index)
    found.connections.add(connection)
    return found
