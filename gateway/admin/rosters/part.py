"""Some of the things of a long list, from one source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

Thing_co = TypeVar("Thing_co", covariant=True)


def on_a_line(name: str) -> str:
    """Return a name as it stands in a text with others, each on a line."""
    return name.replace("\n", " ") if "\n" in name else name


class Part(ABC, Generic[Thing_co]):
    """Some of the things of a list; each has a number from 0 that stays its own."""

    size = 0  # numbers that are given
    names_at_once = 64  # of which each costs a microsecond or two
    gone: Sequence[int] = ()
    """Numbers of things that are known to be gone, as they went; where others went, too, each is asked."""

    @property
    def is_left(self) -> bool:
        """Return whether the things have other numbers now, in another part of the same source."""
        return False

    @abstractmethod
    def arrivals(self) -> Iterator[None]:
        """Give numbers to what came since the last call, some in each step."""

    def mark(self) -> int | None:
        """Return another number once things came or went, at very little cost; None: that is not known."""
        return None

    @abstractmethod
    def alive(self) -> int:
        """Return how many of them are there, at little cost."""

    @abstractmethod
    def name(self, number: int) -> str:
        """Return what a thing is called, also when it is gone."""

    def names(self, first: int, end: int) -> str:
        """Return what the things from one number to before another are called, each on a line."""
        return "\n".join([on_a_line(name) for name in map(self.name, range(first, end))])

    def there(self, first: int, end: int) -> bytes:
        """Return for each thing from one number to before another whether it is there."""
        return bytes([self.take(number) is not None for number in range(first, end)])

    def figures(self, column: str, first: int, end: int) -> Sequence[Any] | None:
        """Return what things have in a column, from one number to before another, where that is quick to tell.

        It is what the column's key says of each; of one that is gone anything of that kind. None: each is to be asked.
        """
        del column, first, end
        return None

    def scattered(self, column: str, numbers: Sequence[int]) -> Sequence[Any] | None:
        """Return the same of things with these numbers, wherever they are, where that is quicker than to ask each."""
        del column, numbers
        return None

    def is_cheap(self, column: str, first: int, end: int) -> bool:
        """Return whether `figures` takes a fraction of a microsecond for each of these things in a column."""
        del column, first, end
        return False

    def at_most(self, column: str, first: int, end: int) -> Sequence[int] | None:
        """Return numbers that things do not pass in a column, from one to before another, where that is quick to tell.

        What they have there is no number below 0. None: each is to be asked.
        """
        del column, first, end
        return None

    @abstractmethod
    def take(self, number: int) -> Thing_co | None:
        """Return a thing; None where it is gone."""
