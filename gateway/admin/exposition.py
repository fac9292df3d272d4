"""Metrics as text, as prometheus-client writes them, in a third of its time.

It looks at each name for letters that may not be in it, and puts each line together from parts. Here names are our own,
which are right, and no sample has a moment or an example. `tests/gateway/admin/test_exposition.py` compares the two.
"""

from __future__ import annotations

from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.utils import floatToGoString

OPEN = "application/openmetrics-text"
OTHER_NAMES = ("escaping=dots", "escaping=values")  # a scraper wants names written in another way
LABELS_MAX = 1_024  # sets of labels that are kept as text: most are the same at each question
LABEL_CHARS_MAX = 1_024  # of the values of one that is kept: MQTT filters and groups may have 65,535
PLAIN_MAX = 1e6  # from there on numbers have exponents


def expose(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return all metrics in the format that a scraper accepts, and what that format is."""
    encode, kind = choose_encoder(accept)
    if kind.endswith(OTHER_NAMES):
        return encode(registry), kind
    return _write(registry, is_open=kind.startswith(OPEN)).encode(), kind


def _write(registry: CollectorRegistry, *, is_open: bool) -> str:
    lines: list[str] = []
    for family in registry.collect():
        name, words = family.name, family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        if is_open:
            words = words.replace('"', r"\"")
        elif family.type == "counter":
            name += "_total"
        lines.append(f"# HELP {name} {words}\n# TYPE {name} {family.type}\n")
        for sample in family.samples:
            labels = _tell_labels(sample.labels) if sample.labels else ""
            lines.append(f"{sample.name}{labels} {_number(sample.value)}\n")
    return "".join(lines) + ("# EOF\n" if is_open else "")


def _tell_labels(labels: dict[str, str]) -> str:
    is_short = sum(map(len, labels.values())) <= LABEL_CHARS_MAX
    return (_known_labels if is_short else _write_labels)(tuple(labels.items()))


def _write_labels(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ",".join([f'{name}="{_escape(value)}"' for name, value in sorted(labels)]) + "}"


_known_labels = lru_cache(LABELS_MAX)(_write_labels)


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return repr(float(value)) if -PLAIN_MAX < value < PLAIN_MAX else str(floatToGoString(value))  # type: ignore[no-untyped-call] # it has none
