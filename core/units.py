"""What a number means: offsets, moments and references, told apart by type."""

from __future__ import annotations

from typing import NewType

PhysicalOffset = NewType("PhysicalOffset", int)
"""Byte address in the commit log, from 0; it never moves."""

QueueOffset = NewType("QueueOffset", int)
"""Number of an entry in one queue, from 0."""

QueueRef = NewType("QueueRef", int)
"""The store's small number for one queue of a data folder, from 0; it lives as long as the folder."""

TimestampMs = NewType("TimestampMs", int)
"""Milliseconds since 1970-01-01T00:00Z."""
