"""One invocation: how often each size is measured, how long, and where progress is shown."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.status import Status


@dataclass
class Run:
    """Handed to what measures; `say` replaces the line that shows where it is."""

    rounds: int
    secs: float
    console: Console
    status: Status | None = None
    scenario: str = ""

    def say(self, text: str) -> None:
        """Show what is being done."""
        line = f"{self.scenario}: {text}"
        if self.status is not None and self.console.is_terminal:
            self.status.update(line)
        else:
            self.console.print(f"[dim]{line}", highlight=False)
