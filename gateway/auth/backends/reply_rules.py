"""What a back end's answer says that its user may do: rules of ours, or an access list as EMQX has it.

Source: EMQX's HTTP authenticator, `acl`: permission, action, topic.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from gateway.auth.backends.question import BackendError
from gateway.settings.rules import RuleSettings

RULES_MAX = 128  # of one answer; chosen: a user's rules of thousands are a set for the settings
PATTERNS_MAX = 64  # of topics or names of one rule; chosen, as RULES_MAX
ABOUT = {"permit", "actions", "vhosts", "topics", "names", "kinds"}  # the subject is said already
_ACL = {"permission", "action", "topic"}
_ACTIONS = {"publish": ("publish",), "subscribe": ("subscribe",), "all": ("publish", "subscribe")}
_PLACES = {"${clientid}": "%c", "${username}": "%u"}


def read_rules(acl: object, rules: object) -> tuple[RuleSettings, ...]:
    """Return the rules of an answer: those of the access list, then ours.

    Raises:
        BackendError: One cannot be understood: nobody comes in with less or more than what was meant.
    """
    said = [_translate(entry) for entry in _check_list(acl)] + _check_list(rules)
    if len(said) > RULES_MAX:
        raise BackendError(f"it sent more than {RULES_MAX} rules")
    return tuple(map(_read_rule, said))


def _check_list(said: object) -> list[Any]:
    if said is None:
        return []
    if not isinstance(said, list):
        raise BackendError("its acl or rules are not a list")
    return said


def _translate(entry: object) -> dict[str, Any]:
    """Return one entry of an access list as one of ours; conditions that are not known here refuse it."""
    if not isinstance(entry, dict) or set(entry) - _ACL:
        raise BackendError("its acl has an entry with more than permission, action and topic")
    action, topic = entry.get("action", "all"), entry.get("topic")
    if not isinstance(topic, str) or not isinstance(action, str) or action not in _ACTIONS or topic.startswith("eq "):
        raise BackendError("its acl has an entry that is not understood")
    if "%c" in topic or "%u" in topic:
        raise BackendError("its acl has a topic with a percent sign, which would stand for something else here")
    for place, ours in _PLACES.items():
        topic = topic.replace(place, ours)
    return {"permit": entry.get("permission"), "actions": _ACTIONS[action], "topics": [topic]}


def _read_rule(said: object) -> RuleSettings:
    if not isinstance(said, dict) or set(said) - ABOUT:
        raise BackendError(f"its rules have more than {', '.join(sorted(ABOUT))}")
    if any(isinstance(part, list | tuple) and len(part) > PATTERNS_MAX for part in said.values()):
        raise BackendError(f"one of its rules has more than {PATTERNS_MAX} topics or names")
    try:
        return RuleSettings.model_validate(said)
    except (ValidationError, RecursionError) as error:
        raise BackendError("one of its rules is not valid") from error
