"""Numbers, moments and names as a reader wants to see them."""

from __future__ import annotations

import unicodedata
from datetime import datetime

_BYTE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_NAME_CHARS_MAX = 200  # a longer name says no more to a reader
_UNIT_FULL = 999.5  # from here on a number without decimals would have four figures
_TWO_DECIMALS_BELOW = 9.995  # from here on two decimals would be rounded to four figures: 10.00
_ONE_DECIMAL_BELOW = 99.95  # as well: 100.0
_MINUTE_S = 60
_HOUR_MIN = 60
_DAYS_FROM_H = 48  # shorter spans are told in hours
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, text direction, halves of characters


def format_count(value: float) -> str:
    """Return a whole number with thin groups of three: 1 234 567."""
    return f"{value:,.0f}".replace(",", "\u202f")


def format_bytes(value: float) -> str:
    """Return a size with three figures and its unit: 1.35 GiB."""
    if abs(value) < _UNIT_FULL:
        return f"{value:.0f}\u202fB"
    size, power = value / 1024, 0
    while abs(size) >= _UNIT_FULL and power < len(_BYTE_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{three_figures(size)}\u202f{_BYTE_UNITS[power]}"


def three_figures(value: float) -> str:
    """Return `value` with three figures: 1.23, 12.3, 123."""
    if abs(value) >= _ONE_DECIMAL_BELOW:
        return format_count(value)
    return f"{value:.1f}" if abs(value) >= _TWO_DECIMALS_BELOW else f"{value:.2f}"


def format_share(value: float) -> str:
    """Return a share of 1 as a percentage."""
    return f"{value * 100:.1f}\u202f%"


def format_moment(value: datetime | None) -> str:
    """Return a moment to the second, in UTC."""
    return value.strftime("%Y-%m-%d %H:%M:%S") if value else ""


def format_duration(milliseconds: int) -> str:
    """Return a length of time in its two largest units: 2 h 13 min."""
    seconds, left = divmod(milliseconds, 1000)
    if seconds < _MINUTE_S:
        return f"{seconds + left / 1000:.3g}\u202fs"
    minutes, seconds = divmod(seconds, _MINUTE_S)
    if minutes < _HOUR_MIN:
        return f"{minutes}\u202fmin {seconds}\u202fs"
    hours, minutes = divmod(minutes, _HOUR_MIN)
    if hours < _DAYS_FROM_H:
        return f"{hours}\u202fh {minutes}\u202fmin"
    return f"{hours // 24}\u202fd {hours % 24}\u202fh"


def visible_name(name: str | None) -> str:
    """Return a peer's name with everything that a reader could not see, or that turns text round, written out."""
    if name is None:
        return "(none)"
    shown = "".join(
        f"\\u{ord(char):04x}" if unicodedata.category(char) in _HIDDEN else char for char in name[:_NAME_CHARS_MAX]
    )
    return shown + ("\u2026" if len(name) > _NAME_CHARS_MAX else "")
