"""Joins the routes of RabbitMQ's management API."""

from __future__ import annotations

from gateway.admin.management.bindings import BINDINGS
from gateway.admin.management.channels import CHANNELS
from gateway.admin.management.connections import CONNECTIONS
from gateway.admin.management.definitions import DEFINITIONS
from gateway.admin.management.exchange_actions import EXCHANGE_ACTIONS
from gateway.admin.management.exchanges import EXCHANGES
from gateway.admin.management.health import HEALTH
from gateway.admin.management.messages import MESSAGES
from gateway.admin.management.overview import OVERVIEW
from gateway.admin.management.parameters import PARAMETERS
from gateway.admin.management.permissions import PERMISSIONS
from gateway.admin.management.policies import OPERATOR_POLICIES, POLICIES
from gateway.admin.management.queue_actions import QUEUE_ACTIONS
from gateway.admin.management.queues import QUEUES
from gateway.admin.management.user_limits import USER_LIMITS
from gateway.admin.management.users import USERS
from gateway.admin.management.vhost_limits import VHOST_LIMITS
from gateway.admin.management.vhosts import VHOSTS
from gateway.admin.routes import Routes

MANAGEMENT = Routes(prefix="/api", tags=("management",))
for routes in (
    OVERVIEW,
    HEALTH,
    CONNECTIONS,
    CHANNELS,
    EXCHANGES,
    EXCHANGE_ACTIONS,
    QUEUES,
    QUEUE_ACTIONS,
    MESSAGES,
    BINDINGS,
    PERMISSIONS,
    USERS,
    USER_LIMITS,
    VHOSTS,
    VHOST_LIMITS,
    POLICIES,
    OPERATOR_POLICIES,
    DEFINITIONS,
    PARAMETERS,
):
    MANAGEMENT.include(routes)
