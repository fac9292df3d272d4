"""What the log says of logins, the same at every door."""

from __future__ import annotations

import logging

from gateway.logs import said, tell

LOGGER = logging.getLogger(__name__)


def log_login(conn_id: int, peer: str, client: bytes | str, user: bytes | str, *, is_known: bool) -> None:
    """Say that a client is let in, with the name that it gave; `is_known`: it proved to be that user."""
    how = "logged in" if is_known else "let in without a login"
    tell(LOGGER, "%s conn=%d peer=%s client=%s user=%s", how, conn_id, peer, said(client), said(user))


def log_refusal(conn_id: int, peer: str, client: bytes | str, user: bytes | str, why: str) -> None:
    """Say that a client is not let in, and why."""
    LOGGER.warning(
        "login refused conn=%d peer=%s client=%s user=%s reason=%s", conn_id, peer, said(client), said(user), why
    )
