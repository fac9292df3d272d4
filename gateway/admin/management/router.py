"""Joins the routes of RabbitMQ's management API."""

from __future__ import annotations

from fastapi import APIRouter

from gateway.admin.management.exchanges import EXCHANGES
from gateway.admin.management.overview import OVERVIEW
from gateway.admin.management.queues import QUEUES

MANAGEMENT = APIRouter(prefix="/api", tags=["management"])
for routes in (OVERVIEW, EXCHANGES, QUEUES):
    MANAGEMENT.include_router(routes)
