"""Joins the routes below `/api/lmq`."""

from __future__ import annotations

from gateway.admin.ours.api_tokens import API_TOKENS
from gateway.admin.ours.bridges import BRIDGES
from gateway.admin.ours.churn import CHURN
from gateway.admin.ours.dead_letters import DEAD_LETTERS
from gateway.admin.ours.delayed import DELAYED
from gateway.admin.ours.fan_out import FAN_OUT
from gateway.admin.ours.groups import GROUPS
from gateway.admin.ours.held import HELD
from gateway.admin.ours.itself import ITSELF
from gateway.admin.ours.light_queues import LIGHT_QUEUES
from gateway.admin.ours.moving import MOVING
from gateway.admin.ours.replaying import REPLAYING
from gateway.admin.ours.retained import RETAINED
from gateway.admin.ours.rules import RULES
from gateway.admin.ours.segments import SEGMENTS
from gateway.admin.ours.sessions import SESSIONS
from gateway.admin.ours.topics import TOPICS
from gateway.admin.ours.tracing import TRACING
from gateway.admin.ours.transactions import TRANSACTIONS
from gateway.admin.routes import Routes

OURS = Routes(prefix="/api/lmq", tags=("lmq",))
for routes in (
    LIGHT_QUEUES,
    DEAD_LETTERS,
    FAN_OUT,
    SESSIONS,
    GROUPS,
    RETAINED,
    MOVING,
    REPLAYING,
    TOPICS,
    TRACING,
    ITSELF,
    API_TOKENS,
    RULES,
    DELAYED,
    HELD,
    SEGMENTS,
    CHURN,
    BRIDGES,
    TRANSACTIONS,
):
    OURS.include(routes)
