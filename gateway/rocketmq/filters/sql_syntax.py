"""An SQL92 filter as a tree: read by recursive descent, bounded in depth and size.

Source: docs/protocols/rocketmq.md, "SQL filters".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.rocketmq.filters.sql_tokens import Kind, SqlError, Token, split_words

DEPTH_MAX = 48  # of parentheses and of signs before a term; chosen: Python's own recursion is bounded, too
NODES_MAX = 400  # of one filter: a chain of comparisons, as `a = b = TRUE` is one, may be as deep

Value = bool | int | float | str | None
"""Of a property a text, or None where the message has none; an `int` has 64 bits."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value; NULL is None."""

    value: Value


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the message."""

    name: str


@dataclass(frozen=True, slots=True)
class Negative:
    """A number with the other sign."""

    of: Node


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    of: Node


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions joined by AND."""

    of: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions joined by OR."""

    of: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Two values compared by size: `sign` is one of `<`, `<=`, `>` and `>=`."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Equal:
    """Two values that are the same."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class OneOf:
    """A property that has, or has not, one of some texts."""

    name: str
    texts: frozenset[str]
    is_wanted: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A text that has, or has not, another in it: `where` is CONTAINS, STARTSWITH or ENDSWITH."""

    where: str
    of: Node
    text: str
    is_wanted: bool


Node = Literal | Property | Negative | Not | AllOf | AnyOf | Order | Equal | OneOf | Part
_CONDITIONS = (Not, AllOf, AnyOf, Order, Equal, OneOf, Part)
_PARTS = ("CONTAINS", "STARTSWITH", "ENDSWITH")
_ORDERS = ("<", "<=", ">", ">=")
NULL = Literal(None)
_Level = Callable[[], Node]


def parse_sql(text: str) -> Node:
    """Return the condition that a filter is.

    Raises:
        SqlError: It is none, or too large.
    """
    return _Reader(split_words(text)).read()


class _Reader:
    """Reads one filter, a level of the grammar a method."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._nodes = 0

    def read(self) -> Node:
        node = self._condition(self._any())
        if self._next.kind is not Kind.END:
            raise self._unexpected()
        return node

    # Levels, from the loosest

    def _any(self) -> Node:
        return self._joined("OR", AnyOf, self._all)

    def _all(self) -> Node:
        return self._joined("AND", AllOf, self._equality)

    def _joined(self, word: str, kind: type[AnyOf | AllOf], read: _Level) -> Node:
        first = read()
        if not self._is_keyword(word):
            return first
        terms = [self._condition(first)]
        while self._take_keyword(word):
            terms.append(self._condition(read()))
        return self._made(kind(tuple(terms)))

    def _equality(self) -> Node:
        left = self._comparison()
        while True:
            if self._take_sign("="):
                left = self._equal(left, self._comparison())
            elif self._take_sign("<>"):
                left = self._made(Not(self._equal(left, self._comparison())))
            elif self._take_keyword("IS"):
                is_null = not self._take_keyword("NOT")
                self._need_keyword("NULL")
                equal = self._made(Equal(left, NULL))
                left = equal if is_null else self._made(Not(equal))
            else:
                return left

    def _comparison(self) -> Node:
        left = self._unary()
        while True:
            token = self._next
            if token.kind is Kind.SIGN and token.value in _ORDERS:
                self._at += 1
                left = self._order(str(token.value), left, self._unary())
                continue
            is_wanted = not (self._is_keyword("NOT") and self._is_keyword("BETWEEN", "IN", *_PARTS, ahead=1))
            self._at += not is_wanted
            if self._take_keyword("BETWEEN"):
                left = self._between(left, is_wanted=is_wanted)
            elif self._take_keyword("IN"):
                left = self._one_of(left, is_wanted=is_wanted)
            elif self._is_keyword(*_PARTS):
                where = str(self._take().value)
                left = self._made(Part(where, left, self._string(), is_wanted))
            else:
                return left

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise SqlError(f"the filter is nested more than {DEPTH_MAX} deep")
        if self._take_sign("+"):
            node = self._unary()
        elif self._take_sign("-"):
            node = self._made(_negative(self._unary()))
        elif self._take_keyword("NOT"):
            node = self._made(Not(self._condition(self._unary())))
        else:
            node = self._primary()
        self._depth -= 1
        return node

    def _primary(self) -> Node:
        token = self._next
        if self._take_sign("("):
            node = self._any()
            if not self._take_sign(")"):
                raise self._unexpected()
            return node
        if token.kind is Kind.NAME:
            return self._made(Property(str(self._take().value)))
        if token.kind in {Kind.NUMBER, Kind.STRING}:
            return self._made(Literal(self._take().value))
        if self._is_keyword("TRUE", "FALSE", "NULL"):
            return self._made(Literal({"TRUE": True, "FALSE": False}.get(str(self._take().value))))
        raise self._unexpected()

    # What stands on both sides of a sign

    def _condition(self, node: Node) -> Node:
        """Return the node; a name alone is the condition that its property is a truth, which no text is."""
        if isinstance(node, (*_CONDITIONS, Property)):
            return node
        if isinstance(node, Literal) and (node.value is None or isinstance(node.value, bool)):
            return node
        raise SqlError("a number or a string is not a condition")

    def _equal(self, left: Node, right: Node) -> Node:
        if _is_null(left) or _is_null(right):
            raise SqlError("NULL cannot be compared: say IS NULL")
        if _is_truth(left) and isinstance(right, Literal) and not _is_truth(right):
            raise SqlError("a truth cannot be compared with this value")
        return self._made(Equal(left, right))

    def _order(self, sign: str, left: Node, right: Node) -> Node:
        for node in (left, right):
            if isinstance(node, _CONDITIONS) or (isinstance(node, Literal) and not _is_number(node)):
                raise SqlError(f"only numbers and properties can be compared by {sign}")
        return self._made(Order(sign, left, right))

    def _between(self, value: Node, *, is_wanted: bool) -> Node:
        low = self._unary()
        self._need_keyword("AND")
        high = self._unary()
        if isinstance(low, Literal) and isinstance(high, Literal) and _is_number(low) and _is_number(high):
            assert isinstance(low.value, int | float)
            assert isinstance(high.value, int | float)
            if low.value > high.value:
                raise SqlError("the first number of BETWEEN is larger than the second")
        if is_wanted:
            return AllOf((self._order(">=", value, low), self._order("<=", value, high)))
        return AnyOf((self._order("<", value, low), self._order(">", value, high)))

    def _one_of(self, left: Node, *, is_wanted: bool) -> Node:
        if not isinstance(left, Property):
            raise SqlError("only a property can be IN a list")
        if not self._take_sign("("):
            raise self._unexpected()
        texts = [self._string()]
        while self._take_sign(","):
            texts.append(self._string())
        if not self._take_sign(")"):
            raise self._unexpected()
        return self._made(OneOf(left.name, frozenset(texts), is_wanted))

    # Words

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _take_sign(self, sign: str) -> bool:
        is_there = self._next.kind is Kind.SIGN and self._next.value == sign
        self._at += is_there
        return is_there

    def _is_keyword(self, *words: str, ahead: int = 0) -> bool:
        token = self._tokens[min(self._at + ahead, len(self._tokens) - 1)]
        return token.kind is Kind.KEYWORD and token.value in words

    def _take_keyword(self, word: str) -> bool:
        is_there = self._is_keyword(word)
        self._at += is_there
        return is_there

    def _need_keyword(self, word: str) -> None:
        if not self._take_keyword(word):
            raise self._unexpected()

    def _string(self) -> str:
        if self._next.kind is not Kind.STRING:
            raise self._unexpected()
        return str(self._take().value)

    def _unexpected(self) -> SqlError:
        token = self._next
        shown = f"unexpected {token.kind.value}" + (f" {str(token.value)[:32]!r}" if token.value != "" else "")
        return SqlError(f"{shown} at column {token.at + 1}")

    def _made(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise SqlError(f"the filter has more than {NODES_MAX} terms")
        return node


def _negative(node: Node) -> Node:
    """Return the node with the other sign; a number at once."""
    if isinstance(node, Literal) and _is_number(node):
        assert isinstance(node.value, int | float)
        return Literal(-node.value)
    return Negative(node)


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _is_truth(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, bool)


def _is_number(literal: Literal) -> bool:
    return isinstance(literal.value, int | float) and not isinstance(literal.value, bool)
