"""The topic filters of rules, by level: which of them are for a topic, or for what another filter matches."""

from __future__ import annotations

NO_RULE = 1 << 40
ONE_LEVEL = b"+"
ANY_LEVELS = b"#"
_NO_RULE = NO_RULE


class Node:
    """One level of some filters."""

    __slots__ = ("children", "least", "number", "plus", "rest")

    def __init__(self) -> None:
        self.children: dict[bytes, Node] = {}
        self.plus: Node | None = None
        self.rest = NO_RULE  # of the filter that goes on with `#`
        self.number = NO_RULE  # of the filter that ends here
        self.least = NO_RULE  # of all here and below


class RuleTrie:
    """Filters with the numbers of their rules."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root = Node()

    def add(self, levels: list[bytes], number: int) -> None:
        """Add a filter of a rule; of equal ones the lowest number counts."""
        node = self._root
        node.least = min(node.least, number)
        for level in levels:
            if level == ANY_LEVELS:
                node.rest = min(node.rest, number)
                return
            if level == ONE_LEVEL:
                if node.plus is None:
                    node.plus = Node()
                node = node.plus
            else:
                child = node.children.get(level)
                if child is None:
                    child = node.children[level] = Node()
                node = child
            node.least = min(node.least, number)
        node.number = min(node.number, number)

    def find_first(self, topic: bytes) -> int:
        """Return the lowest number of a filter that matches a topic, `NO_RULE` where none does."""
        levels = topic.split(b"/")
        root = self._root
        if topic.startswith(b"$"):  # not for wildcards
            child = root.children.get(levels[0])
            return NO_RULE if child is None else _first(child, levels, 1, len(levels), NO_RULE)
        return _first(root, levels, 0, len(levels), NO_RULE)

    def find_overlapping(self, levels: list[bytes], *, wide: bool) -> set[int]:
        """Return the numbers of filters that match a topic that `levels` match too; of equal ones the lowest alone."""
        found: set[int] = set()
        self._walk(levels, wide, found)
        found.discard(NO_RULE)
        return found

    def _walk(self, levels: list[bytes], wide: bool, found: set[int]) -> None:  # noqa: FBT001 - the trie's own
        root = self._root
        todo = [(root, 0)]
        seen = set()
        while todo:
            node, i = todo.pop()
            key = (id(node), i)
            if key in seen:
                continue
            seen.add(key)
            level = levels[i] if i < len(levels) else None
            is_dollar = node is root and level is not None and level.startswith(b"$")
            if not is_dollar:
                found.add(node.rest)
            if level is None:
                found.add(node.number)
                continue
            if level == ANY_LEVELS:
                todo.append((node, i + 1))
            if level in {ANY_LEVELS, ONE_LEVEL}:
                after = i if level == ANY_LEVELS else i + 1
                hides = node is root and not wide
                todo += [
                    (child, after) for name, child in node.children.items() if not (hides and name.startswith(b"$"))
                ]
                if node.plus is not None:
                    todo.append((node.plus, after))
                continue
            child = node.children.get(level)
            if child is not None:
                todo.append((child, i + 1))
            if node.plus is not None and not is_dollar:
                todo.append((node.plus, i + 1))


def _first(node: Node, levels: list[bytes], i: int, end: int, best: int) -> int:
    """Return the lowest number below `best` of a filter that goes on with these levels, else `best`."""
    if node.least >= best:
        return best
    best = min(best, node.rest)
    if i == end:
        return min(best, node.number)
    child = node.children.get(levels[i])
    if child is not None:
        best = _first(child, levels, i + 1, end, best)
    if node.plus is not None:
        best = _first(node.plus, levels, i + 1, end, best)
    return best
