"""The settings `mqtt.rewrite` and `mqtt.auto_subscribe`: what becomes of topics, and what clients need not ask for.

A pattern is a regular expression of which the time is bounded by the length of the topic: it is read from the topic's
start, nothing with a repetition is repeated, and each repetition but the last ends at a character it does not take.
"""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, model_validator

PATTERN_BYTES_MAX = 1_024  # chosen: an expression takes memory in proportion to it
OPTIONAL_MAX = 4  # each can double the time
_ATOM = r"\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\\[dwDWsS]|\\[^a-zA-Z0-9]|[^\\.\[\](){}*+?|^$]"
_TOKEN = re.compile(
    rf"(?P<open>\((?:\?:)?)|(?P<close>\))(?P<maybe>\??)|(?P<end>\$)|(?P<atom>{_ATOM})(?P<repeat>[*+?]\??|\{{\d{{1,3}}(?:,\d{{0,3}})?\}})?"
)
_PLACE = re.compile(r"\$([1-9])")
_SLOW = "could take long: each repetition but the last must end at a character that it cannot take, as [^/]+/ does"


def check_pattern(text: str) -> str:
    """Return a pattern that is one, and quick on any topic.

    Raises:
        ValueError: It is neither.
    """
    if len(text) > PATTERN_BYTES_MAX:
        raise ValueError(f"is longer than {PATTERN_BYTES_MAX}")
    if not text.isascii():
        raise ValueError("must be ASCII; a dot or a class takes one byte of UTF-8")
    try:
        with warnings.catch_warnings(action="error"):  # of what may mean something else one day
            re.compile(text)
    except (re.error, FutureWarning, DeprecationWarning) as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    if not text.startswith("^"):
        raise ValueError("must begin with ^: topics are matched from their start")
    atoms = _read_atoms(text[1:])
    optional = sum(repeat.startswith("?") for _, repeat in atoms)
    repeated = [i for i, (_, repeat) in enumerate(atoms) if repeat and not repeat.startswith("?")]
    if optional > OPTIONAL_MAX:
        raise ValueError(f"has more than {OPTIONAL_MAX} parts that may be missing")
    for i in repeated[:-1]:
        if not _ends(atoms[i][0], *atoms[i + 1]):
            raise ValueError(_SLOW)
    return text


def _read_atoms(text: str) -> list[tuple[str, str]]:
    """Return single characters and classes, each with its repetition; a group that may be missing adds an empty one."""
    atoms: list[tuple[str, str]] = []
    pos = 0
    while pos < len(text):
        found = _TOKEN.match(text, pos)
        if found is None or (found["end"] and found.end() < len(text)):
            raise ValueError(f"has something at {pos + 1} that is not taken here, such as | or a repeated group")
        if found["atom"]:
            atoms.append((found["atom"], found["repeat"] or ""))
        elif found["maybe"]:
            atoms.append(("", "?"))
        pos = found.end()
    return atoms


def _ends(repeated: str, follower: str, repeat: str) -> bool:
    """Return whether a repetition can only end where it is followed: by one character that it does not take."""
    is_escaped = follower.startswith("\\")
    is_letter = not follower[1:].isalpha() if is_escaped else len(follower) == 1 and follower != "."
    return is_letter and not repeat and re.fullmatch(repeated, follower[-1]) is None


def _check_filter(text: str) -> str:
    levels = text.split("/")
    if not text or any(("+" in level or "#" in level) and len(level) > 1 for level in levels) or "#" in levels[:-1]:
        raise ValueError("must be a topic filter: + and # fill their levels, # is the last one")
    return text


Filter = Annotated[str, Field(max_length=16_384), AfterValidator(_check_filter)]


class RewriteRule(BaseModel, frozen=True, extra="forbid"):
    """One rule of `mqtt.rewrite`; for a topic, the first rule whose source filter matches it applies."""

    action: Literal["publish", "subscribe", "all"] = "all"  # rewrite topics that are published, filters, or both
    source: Filter  # topics or filters that the rule matches
    # regular expression that begins with ^; a topic that it does not match stays
    pattern: Annotated[str, AfterValidator(check_pattern)]
    destination: Annotated[str, Field(min_length=1)]  # new topic, with $1 to $9, %c or ${clientid}, %u or ${username}

    @model_validator(mode="after")
    def _check_places(self) -> RewriteRule:
        groups = re.compile(self.pattern).groups
        beyond = [number for number in _PLACE.findall(self.destination) if int(number) > groups]
        if beyond:
            raise ValueError(
                f"destination has ${beyond[0]}, and the pattern {groups or 'no'} group{'s' * (groups != 1)}"
            )
        return self

    def __str__(self) -> str:
        """Return the rule in one line."""
        return f"{self.action} {self.source} {self.pattern} -> {self.destination}"


class AutoSubscription(BaseModel, frozen=True, extra="forbid"):
    """One filter of `mqtt.auto_subscribe`, to which each client is subscribed when it connects."""

    filter: Filter  # filter, with ${clientid} and ${username}; also $share/…, $queue/…
    qos: Annotated[int, Field(ge=0, le=2)] = 0  # highest QoS of the subscription
    no_local: bool = False  # leave out the client's own messages
    retain_as_published: bool = False  # keep the retain flag of messages
    # retained messages: 0 at each connect, 1 the first time, 2 never
    retain_handling: Annotated[int, Field(ge=0, le=2)] = 0

    def __str__(self) -> str:
        """Return the filter and its QoS."""
        return f"{self.filter} at {self.qos}"
