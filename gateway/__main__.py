"""`python -m gateway` is `lmq`."""

from __future__ import annotations

from gateway.commands.main import main

if __name__ == "__main__":
    main()
