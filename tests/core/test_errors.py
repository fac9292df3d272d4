from __future__ import annotations

import pytest

from core import errors


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errors.DataFolderInUseError("d", 7), "data folder d is in use by process 7"),
        (errors.DataFolderUnusableError("d", "read-only"), "cannot use data folder d: read-only"),
        (errors.DiskFullError("f"), "no space left for f"),
        (errors.FlushFailedError("EIO"), "cannot sync to disk: EIO"),
        (errors.CorruptRecordError(9, "wrong CRC"), "corrupt record at 9: wrong CRC"),
        (errors.MessageTooLargeError("body", 5, 4), "body has 5 bytes, more than 4"),
        (errors.InvalidNameError("a b", "space"), "invalid name 'a b': space"),
        (errors.QueueNotFoundError("q"), "no such queue: q"),
        (errors.OffsetOutOfRangeError("q", 9, 1, 4), "offset 9 of q is outside 1..4"),
        (errors.ReceiptError("q", 3), "no message 3 of q is in flight"),
    ],
)
def test_each_error_says_what_happened_in_one_line(error, says):
    assert str(error) == says
    assert isinstance(error, errors.LmqError)
