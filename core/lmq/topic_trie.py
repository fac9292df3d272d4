"""From a topic to the values of all filters that match it; work grows with the levels of the topic, for any filters.

A filter without wildcards is one entry of a map. The others share a trie, which is walked as a set of states, level by
level: a node stands for the levels that led to it, is reached in one way only and steps at most once a level. A `#`
leads to a node that stays in the set, so several of them add states and do not multiply work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import cast

from core import untracked
from core.bytes_map import BytesMap
from core.lmq.topic_space import split_levels

PLUS = b"+"
HASH = b"#"
_SLASH = b"/"
_DOLLAR = 0x24
_PASSED_MAX = 1_024  # states of levels gone by that a match keeps before it lets go of them; chosen
WIDE_MIN = 4_096  # from so many next levels on, a level keeps them in a map that grows without a pause
_WIDE_MIN = WIDE_MIN  # the name that the compiled code uses
_PAIRWISE_MAX = 4  # so few values are compared with each other more cheaply than hashed


class TopicNode:
    """One level of some filters.

    A slot is None, one value that was inserted once, or a dict from values to how often they were inserted. Literal
    levels that follow are None, one pair of level and node, or a dict: most nodes have one, and a dict costs 232 bytes;
    very many are a map.
    """

    __slots__ = ("children", "plus", "rest", "rest_values", "seen", "values")

    def __init__(self) -> None:
        self.children: Children | None = None  # by literal level
        self.plus: TopicNode | None = None  # after a `+`
        self.rest: TopicNode | None = None  # after a `#` that is not the last level
        self.values: object = None  # slot of the filter that ends here
        self.rest_values: object = None  # slot of the filter that ends with a `#` after this node
        self.seen = 0  # the match that entered this node last
        untracked.untrack(self)


Children = tuple[bytes, TopicNode] | dict[bytes, TopicNode] | BytesMap


class TopicTrie:
    """Filters with values; a value may stand under many filters, and several times under one.

    Values are hashable, and neither None nor dicts.
    """

    def __init__(self) -> None:
        self._exact = BytesMap({})
        self._open = TopicNode()
        self._hiding = TopicNode()  # filters whose leading wildcard is not to match `$`-topics
        self._pair_count = 0
        self._wildcard_count = 0
        self._match_number = 0

    def __len__(self) -> int:
        """Return how many distinct pairs of filter and value there are."""
        return self._pair_count

    def insert(self, topic_filter: bytes, value: Hashable, *, hides_dollar: bool = False) -> bool:
        """Put `value` under `topic_filter` once more; return whether it was not there yet.

        Args:
            topic_filter: Levels between `/`, of which `+` and `#` are wildcards, at any place.
            value: What a match reports.
            hides_dollar: A leading wildcard does not match topics that start with `$`.
        """
        if not is_wildcard(topic_filter):
            slot = self._exact.get(topic_filter)
            is_new = not slot_has(slot, value)
            self._exact.put(topic_filter, slot_with(slot, value))
            self._pair_count += is_new
            return is_new
        levels = split_levels(topic_filter)
        node = self._hiding if hides_dollar and levels[0] in {PLUS, HASH} else self._open
        last = len(levels) - 1
        for i, level in enumerate(levels):
            if i < last or level != HASH:
                node = grow(node, level)
        slot = node.rest_values if levels[last] == HASH else node.values
        is_new = not slot_has(slot, value)
        put_slot(node, levels[last], slot_with(slot, value))
        self._pair_count += is_new
        self._wildcard_count += is_new
        return is_new

    def remove(self, topic_filter: bytes, value: Hashable) -> bool:
        """Take back one `insert`; return whether the filter has the value no more.

        Raises:
            KeyError: The value is not there.
        """
        if not is_wildcard(topic_filter):
            return self._remove_exact(topic_filter, value)
        levels = split_levels(topic_filter)
        if levels[0] in {PLUS, HASH} and slot_has(find_slot(self._hiding, levels), value):
            root = self._hiding
        else:
            root = self._open
        slot = find_slot(root, levels)
        if not slot_has(slot, value):
            raise KeyError(topic_filter, value)
        slot = slot_without(slot, value)
        cut(root, levels, slot)
        is_gone = not slot_has(slot, value)
        self._pair_count -= is_gone
        self._wildcard_count -= is_gone
        return is_gone

    def _remove_exact(self, topic_filter: bytes, value: Hashable) -> bool:
        slot = self._exact.get(topic_filter)
        if not slot_has(slot, value):
            raise KeyError(topic_filter, value)
        slot = slot_without(slot, value)
        if slot is None:
            self._exact.drop(topic_filter)
        else:
            self._exact.put(topic_filter, slot)
        is_gone = not slot_has(slot, value)
        self._pair_count -= is_gone
        return is_gone

    def match(self, topic: bytes, out: list[object]) -> None:
        """Append the values of all filters that match `topic`, each value once."""
        start = len(out)
        slots = 0
        slot = self._exact.get(topic)
        if slot is not None:
            slots = report(slot, out)
        if self._wildcard_count:
            slots += self._walk(topic, out)
        if slots > 1 and (slots > _PAIRWISE_MAX or not are_distinct(out, start)):
            out[start:] = list(dict.fromkeys(out[start:]))

    def _walk(self, topic: bytes, out: list[object]) -> int:
        """Report what the tries of wildcard filters say; return how many values, of which some may be the same.

        `states` has the nodes that the levels so far lead to; those from `head` on are to take the next level.
        """
        states: list[TopicNode] = []
        staying: list[TopicNode] = []  # nodes after a `#`: they take any level and stay where they are
        self._match_number += 1
        slots = self._enter(self._open, states, staying, out)
        if not topic or topic[0] != _DOLLAR:
            slots += self._enter(self._hiding, states, staying, out)
        head = 0
        for level in topic.split(_SLASH) if topic else ():
            tail = len(states)
            staying_count = len(staying)
            if head == tail and not staying_count:
                return slots
            for i in range(head, tail):
                slots += self._step(states[i], level, states, staying, out)
            for i in range(staying_count):
                slots += self._step(staying[i], level, states, staying, out)
            head = tail
            if head > _PASSED_MAX:
                del states[:head]
                head = 0
        for i in range(head, len(states)):
            node = states[i]
            if node.values is not None:
                slots += report(node.values, out)
        return slots

    def _step(
        self, node: TopicNode, level: bytes, states: list[TopicNode], staying: list[TopicNode], out: list[object]
    ) -> int:
        slots = 0
        if node.children is not None:
            child = find_child(node.children, level)
            if child is not None:
                slots = self._enter(child, states, staying, out)
        if node.plus is not None:
            slots += self._enter(node.plus, states, staying, out)
        return slots

    def _enter(self, node: TopicNode, states: list[TopicNode], staying: list[TopicNode], out: list[object]) -> int:
        """Take a node into the states if it can do more; report what matches whatever follows, once a match."""
        if node.children is not None or node.plus is not None or node.values is not None:
            states.append(node)
        slots = 0
        while node.seen != self._match_number and (node.rest is not None or node.rest_values is not None):
            node.seen = self._match_number
            if node.rest_values is not None:
                slots += report(node.rest_values, out)
            if node.rest is None:
                break
            node = node.rest
            staying.append(node)
        return slots

    def explain(self, topic: bytes) -> dict[bytes, dict[object, int]]:
        """Return the filters that match `topic`, each with its values and how often each; slower than `match`."""
        found: dict[bytes, dict[object, int]] = {}
        exact = self._exact.get(topic)
        if exact is not None:
            found[topic] = slot_counts(exact)
        levels = split_levels(topic)
        roots = (self._open,) if topic.startswith(b"$") else (self._open, self._hiding)
        for root in roots:
            for topic_filter, slot in _matching_slots(root, levels):
                counts = found.setdefault(topic_filter, {})
                for value, count in slot_counts(slot).items():
                    counts[value] = counts.get(value, 0) + count
        return found


def is_wildcard(topic_filter: bytes) -> bool:
    """Return whether any level of the filter is `+` or `#`."""
    if PLUS not in topic_filter and HASH not in topic_filter:
        return False
    levels = split_levels(topic_filter)
    return PLUS in levels or HASH in levels


def report(slot: object, out: list[object]) -> int:
    """Append the values of a slot that is not None; return how many."""
    if type(slot) is dict:
        out.extend(slot)
        return len(slot)
    out.append(slot)
    return 1


def are_distinct(values: list[object], start: int) -> bool:
    """Return whether no two of the values from `start` on are equal; for a few of them."""
    end = len(values)
    for i in range(start + 1, end):
        for k in range(start, i):
            if values[i] == values[k]:
                return False
    return True


def slot_counts(slot: object) -> dict[object, int]:
    """Return the distinct values of a slot that is not None, and how often each was put in."""
    if type(slot) is dict:
        return dict(slot)
    return {slot: 1}


def slot_has(slot: object, value: object) -> bool:
    """Return whether `value` is in the slot."""
    if type(slot) is dict:
        return value in slot
    return slot is not None and slot == value


def slot_with(slot: object, value: object) -> object:
    """Return the slot with `value` put in once more."""
    if slot is None:
        return value
    counts: dict[object, int] = slot if type(slot) is dict else {slot: 1}
    counts[value] = counts.get(value, 0) + 1
    return counts


def slot_without(slot: object, value: object) -> object:
    """Return the slot, which has `value`, with it taken out once."""
    if type(slot) is not dict:
        return None
    counts: dict[object, int] = slot
    counts[value] -= 1
    if not counts[value]:
        del counts[value]
    if len(counts) == 1:
        ((only, count),) = counts.items()
        return only if count == 1 else counts
    return counts


def grow(node: TopicNode, level: bytes) -> TopicNode:
    """Return the node after `level`, made if need be."""
    found = child_of(node, level)
    if found is not None:
        return found
    made = TopicNode()
    if level == PLUS:
        node.plus = made
    elif level == HASH:
        node.rest = made
    elif node.children is None:
        node.children = (level, made)
    elif isinstance(node.children, BytesMap):
        node.children.put(level, made)
    elif isinstance(node.children, tuple):
        node.children = dict([node.children, (level, made)])
    else:
        node.children[level] = made
        if len(node.children) >= _WIDE_MIN:
            node.children = BytesMap(cast("dict[bytes, object]", node.children))
    return made


def find_child(children: Children, level: bytes) -> TopicNode | None:
    """Return the node of a literal level among the children of a node that has some, or None."""
    if isinstance(children, tuple):
        pair = children
        return pair[1] if pair[0] == level else None
    if isinstance(children, BytesMap):
        wide = children
        return cast("TopicNode | None", wide.get(level))
    many = children
    return many.get(level)


def child_of(node: TopicNode, level: bytes) -> TopicNode | None:
    """Return the node after `level`, or None."""
    if level == PLUS:
        return node.plus
    if level == HASH:
        return node.rest
    return None if node.children is None else find_child(node.children, level)


def put_slot(node: TopicNode, last_level: bytes, slot: object) -> None:
    """Set the slot of a filter with that last level."""
    if last_level == HASH:
        node.rest_values = slot
    else:
        node.values = slot


def find_slot(root: TopicNode, levels: list[bytes]) -> object:
    """Return the slot of a filter."""
    node: TopicNode | None = root
    last = len(levels) - 1
    for i, level in enumerate(levels):
        if node is None:
            return None
        if i == last and level == HASH:
            return node.rest_values
        node = child_of(node, level)
    return None if node is None else node.values


def cut(root: TopicNode, levels: list[bytes], slot: object) -> None:
    """Set the slot of a filter that is there; nodes that then lead nowhere go."""
    path = [root]
    last = len(levels) - 1
    steps = levels[:last] if levels[last] == HASH else levels
    for level in steps:
        child = child_of(path[len(path) - 1], level)
        assert child is not None
        path.append(child)
    put_slot(path[len(path) - 1], levels[last], slot)
    for i in range(len(steps) - 1, -1, -1):
        if not is_bare(path[i + 1]):
            return
        drop_child(path[i], steps[i])


def is_bare(node: TopicNode) -> bool:
    """Return whether the node leads nowhere."""
    return (
        node.values is None
        and node.rest_values is None
        and node.children is None
        and node.plus is None
        and node.rest is None
    )


def drop_child(node: TopicNode, level: bytes) -> None:
    """Forget the node after `level`."""
    if level == PLUS:
        node.plus = None
    elif level == HASH:
        node.rest = None
    elif isinstance(node.children, BytesMap):
        node.children.drop(level)
        if len(node.children) < _WIDE_MIN // 2:
            node.children = cast("dict[bytes, TopicNode]", dict(node.children.items()))
    elif isinstance(node.children, dict):
        del node.children[level]
        if len(node.children) == 1:
            (node.children,) = node.children.items()
    else:
        node.children = None


def _matching_slots(root: TopicNode, levels: list[bytes]) -> Iterator[tuple[bytes, object]]:
    count = len(levels)
    waiting: list[tuple[TopicNode, list[bytes], int]] = [(root, [], 0)]
    done: set[tuple[int, int]] = set()
    while waiting:
        node, path, taken = waiting.pop()
        if (id(node), taken) in done:
            continue
        done.add((id(node), taken))
        if node.rest_values is not None:
            yield b"/".join([*path, HASH]), node.rest_values
        if node.rest is not None:
            waiting.append((node.rest, [*path, HASH], taken))
        if taken == count:
            if node.values is not None:
                yield b"/".join(path), node.values
            continue
        if path and path[len(path) - 1] == HASH:
            waiting.append((node, path, taken + 1))
        for level in (levels[taken], PLUS):
            child = None if level == HASH else child_of(node, level)
            if child is not None:
                waiting.append((child, [*path, level], taken + 1))
