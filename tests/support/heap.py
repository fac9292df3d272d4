"""What stays in memory for a whole run of tests."""

from __future__ import annotations

import gc


def leave_alone_what_stays() -> None:
    """Let the collector of cycles go through no object that is here now: it stays to the end of the run.

    With thousands of tests collected, a full round takes 0.35 s of processor time, and there is one for each 30 tests
    of the doors. The last round here finds next to nothing, and tells the collector how few objects are left to it.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
