"""Answers of web servers about logins: `allow`, `deny` or `ignore`, as text or as JSON.

Source: EMQX's HTTP authenticator (JSON with `result`); RabbitMQ's rabbitmq_auth_backend_http (`allow` and tags).
"""

from __future__ import annotations

import json
import re
from typing import Any

from gateway.auth.backends.http_client import HttpAnswer
from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Reply, Verdict, check_groups
from gateway.auth.backends.reply_rules import read_rules
from gateway.auth.tokens import MOMENT_MAX_S, NEVER_MS
from gateway.settings.rules import RuleSettings

OK = 200
NO_CONTENT = 204
REFUSED = (401, 403)
SUPERUSER = "superuser"  # the group of those that a server says `is_superuser` of
_BETWEEN = re.compile(r"[\s,]+")


def read_reply(answer: HttpAnswer) -> Reply:
    """Return what a server said.

    Raises:
        BackendError: It said nothing that can be understood.
    """
    if answer.status in REFUSED:
        return NO
    if answer.status == NO_CONTENT:
        return Reply(Verdict.YES)
    if answer.status != OK:
        raise BackendError(f"its status is {answer.status}")
    try:
        text = answer.body.decode()
    except UnicodeDecodeError as error:
        raise BackendError("its answer is not text") from error
    return _read_json(text) if text.lstrip().startswith("{") else _read_words(text)


def _read_words(text: str) -> Reply:
    word, *groups = filter(None, _BETWEEN.split(text)) if text.strip() else ("",)
    return _make(word.lower(), tuple(groups), NEVER_MS)


def _read_json(text: str) -> Reply:
    try:
        said: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BackendError("its answer is not JSON") from error
    groups = said.get("groups", [])
    names = check_groups(groups.split() if isinstance(groups, str) else groups)
    if said.get("is_superuser") is True:
        names = (*names, SUPERUSER)
    rules = read_rules(said.get("acl"), said.get("rules"))
    return _make(said.get("result"), names, _read_moment(said.get("expire_at")), rules)


def _read_moment(said: object) -> int:
    if said is None:
        return NEVER_MS
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < MOMENT_MAX_S:
        raise BackendError("its expire_at is not a time")
    return int(1000 * said)


def _make(result: object, groups: tuple[str, ...], ends_at_ms: int, rules: tuple[RuleSettings, ...] = ()) -> Reply:
    if result == Verdict.YES.value:
        return Reply(Verdict.YES, check_groups(groups), ends_at_ms, rules)
    if result == Verdict.NO.value:
        return NO
    if result == Verdict.NOT_MINE.value:
        return NOT_MINE
    raise BackendError("its answer is none of allow, deny and ignore")
