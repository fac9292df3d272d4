"""Walks over what a door has, as lists."""

from __future__ import annotations

from itertools import islice


def take_steps(walk, steps):
    """Return what the next steps of a walk give: a step may give nothing."""
    return [entry for entry in islice(walk, steps) if entry is not None]


def all_of(walk):
    """Return all that a walk gives."""
    return [entry for entry in walk if entry is not None]
