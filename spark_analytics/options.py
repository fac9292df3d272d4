"""What a reader of the format `lmq` may be asked for: Spark's option strings, checked once. Needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OPTION_NAMES = (
    "path",
    "view",
    "columns",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffset",
    "endingOffset",
    "onBadRecord",
    "includeBody",
    "tasksPerSegment",
)
VIEWS = ("messages", "dispatches")
BAD_RECORD_ACTIONS = ("fail", "skip")
_TRUE_WORDS = {"true": True, "false": False}


class OptionError(ValueError):
    """An option of the format `lmq` that is missing, unknown or outside its range."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"option {option!r} of format lmq: {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, ...]]:
        return type(self), (self.option, self.reason)


class StreamRefusedError(OptionError):
    """`readStream` of the format `lmq`."""

    def __init__(self) -> None:
        reason = "the log is read in batches; use spark.read, with startingOffset for what is new since the last one"
        super().__init__("readStream", reason)

    def __reduce__(self) -> tuple[type[StreamRefusedError], tuple[()]]:
        return type(self), ()


@dataclass(frozen=True)
class ReadOptions:
    """One read of a data folder; store times (ms) and physical offsets are half-open, None without a bound."""

    path: str
    view: str = "messages"
    columns: tuple[str, ...] = ()  # empty: the statistics columns of the view
    starting_ms: int | None = None
    ending_ms: int | None = None
    skip_bad_records: bool = False
    include_body: bool = False  # whether a default set of columns holds the body
    starting_offset: int | None = None
    ending_offset: int | None = None
    tasks_per_segment: int = 0  # at most; 0: as many as there are cores


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """Return the checked form of Spark's options, whose names may come in any case.

    Raises:
        OptionError: An option is unknown, or its value is outside its range.
    """
    values = {_known_name(name): value for name, value in given.items()}
    return ReadOptions(
        path=_path(values),
        view=_choice(values, "view", VIEWS),
        columns=_columns(values.get("columns", "")),
        starting_ms=_number(values, "startingTimestamp", "a time in milliseconds"),
        ending_ms=_number(values, "endingTimestamp", "a time in milliseconds"),
        starting_offset=_number(values, "startingOffset", "a physical offset"),
        ending_offset=_number(values, "endingOffset", "a physical offset"),
        tasks_per_segment=_number(values, "tasksPerSegment", "a number of tasks") or 0,
        skip_bad_records=_choice(values, "onBadRecord", BAD_RECORD_ACTIONS) == "skip",
        include_body=_truth(values, "includeBody"),
    )


def _known_name(name: str) -> str:
    for known in OPTION_NAMES:
        if known.lower() == name.lower():
            return known
    raise OptionError(name, f"unknown; known are {', '.join(OPTION_NAMES)}")


def _path(values: Mapping[str, str]) -> str:
    path = values.get("path", "").removeprefix("file://")
    if not path:
        raise OptionError("path", "the gateway's data folder must be named")
    return path


def _choice(values: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = values.get(name, allowed[0]).lower()
    if value not in allowed:
        raise OptionError(name, f"{value!r} is not one of {', '.join(allowed)}")
    return value


def _truth(values: Mapping[str, str], name: str) -> bool:
    value = values.get(name, "false").lower()
    if value not in _TRUE_WORDS:
        raise OptionError(name, f"{value!r} is neither true nor false")
    return _TRUE_WORDS[value]


def _columns(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _number(values: Mapping[str, str], name: str, what: str) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    if not value.isdecimal():
        raise OptionError(name, f"{value!r} is not {what}")
    return int(value)
