"""Random lives beside a model: one that fails says of which seed it is, and what it did last."""

from __future__ import annotations

import contextlib
import shutil

LOGGED = 60  # last lines of a life's log


@contextlib.contextmanager
def told(seed, life, close):
    """Run the life of a seed; close it by `close` in any case, and take its folder away if it came to its end."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the life of seed {seed}")
        error.add_note("\n".join(map(repr, getattr(life, "log", ())[-LOGGED:])))
        raise
    finally:
        close()
    shutil.rmtree(life.folder)
