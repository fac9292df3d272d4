"""One tree of errors for the whole core; each front maps it onto its protocol in one table."""

from __future__ import annotations


class LmqError(Exception):
    """Something the core refuses or could not do."""


class StoreError(LmqError):
    """The data folder could not do what was asked."""


class DataFolderInUseError(StoreError):
    """Another process has the data folder open."""

    def __init__(self, path: str, pid: int | None = None) -> None:
        holder = f" by process {pid}" if pid else ""
        super().__init__(f"data folder {path} is in use{holder}")
        self.path = path
        self.pid = pid


class DataFolderUnusableError(StoreError):
    """The data folder cannot be made, read or written, or was written by another version."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot use data folder {path}: {reason}")
        self.path = path
        self.reason = reason


class DiskFullError(StoreError):
    """No room for another segment; what was appended before stays valid."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no space left for {path}")
        self.path = path


class FlushFailedError(StoreError):
    """The disk refused a sync: nothing after `flushed_until` may be promised any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"cannot sync to disk: {reason}")
        self.reason = reason


class StoreClosedError(StoreError):
    """The store was closed, or has failed and takes no more writes."""


class CorruptRecordError(StoreError):
    """Bytes of a log or index file that cannot have been written by a sound writer."""

    def __init__(self, physical_offset: int, reason: str) -> None:
        super().__init__(f"corrupt record at {physical_offset}: {reason}")
        self.physical_offset = physical_offset
        self.reason = reason


class MessageTooLargeError(LmqError):
    """A body or its properties exceed what a record can hold."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} has {size} bytes, more than {limit}")
        self.what = what
        self.size = size
        self.limit = limit


class InvalidNameError(LmqError):
    """A topic, filter, queue or group name that the rules do not allow."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"invalid name {name!r}: {reason}")
        self.name = name
        self.reason = reason


class QueueError(LmqError):
    """A queue could not do what was asked."""


class QueueNotFoundError(QueueError):
    """No queue of that name, and the caller did not ask to make one."""

    def __init__(self, queue: str) -> None:
        super().__init__(f"no such queue: {queue}")
        self.queue = queue


class QueueLimitError(QueueError):
    """No more names of queues are taken; those that are there go on."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the limit of {limit} names of queues is reached (store.queues_max)")
        self.limit = limit


class OffsetOutOfRangeError(QueueError):
    """A queue offset that is not kept any more, or not given yet."""

    def __init__(self, queue: str, offset: int, min_offset: int, max_offset: int) -> None:
        super().__init__(f"offset {offset} of {queue} is outside {min_offset}..{max_offset}")
        self.queue = queue
        self.offset = offset
        self.min_offset = min_offset
        self.max_offset = max_offset


class ReceiptError(QueueError):
    """A receipt that proves no pop in force: unknown, already acknowledged, or timed out."""

    def __init__(self, queue: str, offset: int) -> None:
        super().__init__(f"no message {offset} of {queue} is in flight")
        self.queue = queue
        self.offset = offset
