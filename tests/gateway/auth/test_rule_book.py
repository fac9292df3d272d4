from __future__ import annotations

import asyncio

import pytest

from gateway.auth import rule_book, rule_draft, rules as rules_module
from gateway.auth.rule_book import Account, RulesError
from gateway.auth.rule_lists import RuleLists
from gateway.auth.user_rows import NameRow, UserRows
from gateway.settings.rules import RuleSettings
from tests.gateway.auth.test_permissions import change, make_book, of

OPS = {"permit": "allow", "groups": ["ops"], "topics": ["a/#"]}


def test_groups_are_those_of_the_user():
    accounts = {"ann": Account(groups=("ops",)), "bob": Account()}
    book = make_book(OPS, allows=False, accounts=accounts)
    assert of(book, "ann").may_publish(b"a/1")
    assert not of(book, "bob").may_publish(b"a/1")


def test_groups_of_a_token_stand_for_those_of_a_user():
    book = make_book(OPS, allows=False)
    for groups, is_let in ((("ops",), True), ((), False), (("other",), False)):
        may = book.make("cy", client="", host="", door="mqtt", groups=groups)
        assert may.may_publish(b"a/1") is is_let
        assert not may.may_publish(b"b")


def test_only_who_may_read_less_has_lost_something():
    accounts = {"ann": Account(), "bob": Account()}
    book = make_book(accounts=accounts)
    ann, bob = of(book, "ann"), of(book, "bob")
    change(book, {"permit": "deny", "users": ["bob"], "topics": ["a/#"]}, accounts=accounts)
    ann.find_version()
    bob.find_version()
    assert not ann.has_lost
    assert bob.has_lost


def test_with_another_default_all_have_lost():
    book = make_book()
    may = of(book)
    change(book, allows=False)
    may.find_version()
    assert may.has_lost


def test_who_asks_after_several_changes_has_lost_in_any_case():
    book = make_book()
    may = of(book)
    for _ in range(2):
        change(book, {"permit": "allow", "topics": ["a"]})
    may.find_version()
    assert may.has_lost


def test_who_comes_in_afterwards_has_lost_nothing():
    book = make_book()
    change(book, allows=False)
    assert not of(book).has_lost


def test_clients_that_were_let_in_alike_are_told_apart_by_rules_that_come_later():
    accounts = {"ann": Account()}
    book = make_book(accounts=accounts)
    one, other = (of(book, "ann", client=client) for client in ("c1", "c2"))
    change(book, {"permit": "deny", "clients": ["c2"], "topics": ["a/#"]}, accounts=accounts)
    assert one.may_publish(b"a/1")
    assert not other.may_publish(b"a/1")
    assert of(book, "ann", client="c1").may_publish(b"a/1")
    assert not of(book, "ann", client="c2").may_publish(b"a/1")


def test_rules_of_users_and_groups_are_told_apart_where_clients_are_not(monkeypatch):
    monkeypatch.setattr(rule_book, "VIEWS_MAX", 2)
    accounts = {"ann": Account(groups=("ops",)), "bob": Account(), "cy": Account()}
    book = make_book(OPS, {"permit": "allow", "users": ["cy"], "topics": ["c/#"]}, allows=False, accounts=accounts)
    for _ in range(2):
        for user, topic in (("ann", b"a/1"), ("bob", b""), ("cy", b"c/1")):
            may = of(book, user)
            assert [one for one in (b"a/1", b"c/1") if may.may_publish(one)] == [one for one in (topic,) if one]


class Steps:
    """Calls back when the test says so."""

    def __init__(self, book):
        self.later = []
        self.whole_count = 0
        book.index_in_steps(lambda _, callback: self.later.append(callback), self.note_whole)

    def note_whole(self):
        self.whole_count += 1

    def run(self, count=1 << 30):
        """Take so many steps, and return how many there were."""
        for taken in range(count):
            if not self.later:
                return taken
            self.later.pop(0)()
        return count


def many(*first, count=1_100):
    return [*first, *({"permit": "allow", "topics": [f"t/{i}/#"]} for i in range(count))]


DENY = {"permit": "deny", "topics": ["a/#"]}


def test_many_rules_count_once_their_index_is_whole_and_those_before_until_then():
    book = make_book(*many(DENY), allows=True)
    may = of(book)
    steps = Steps(book)
    assert not may.may_publish(b"a/1")
    change(book, *many(), allows=True)
    assert not may.may_publish(b"a/1")
    steps.run(5)
    assert not may.may_publish(b"a/1")
    assert not may.may_subscribe(b"a/1")
    assert steps.whole_count == 0
    assert steps.run() > 10
    assert may.may_publish(b"a/1")
    assert steps.whole_count == 1


@pytest.mark.asyncio
async def test_change_of_many_rules_is_waited_for_and_the_last_one_counts():
    book = make_book(allows=True)
    may = of(book)
    steps = Steps(book)
    change(book, *many(), allows=True)
    change(book, *many(DENY), allows=True)
    waiting = asyncio.create_task(book.whole())
    await asyncio.sleep(0)
    assert may.may_publish(b"a/1")
    assert not waiting.done()
    steps.run()
    await waiting
    assert not may.may_publish(b"a/1")
    assert may.has_lost
    assert steps.whole_count == 1
    await book.whole()


def test_what_comes_with_rules_counts_with_them_and_opens_nothing_before():
    book = make_book(*many({"permit": "allow", "topics": ["open/#"]}), allows=False)
    steps = Steps(book)
    rules = change(book, *many(DENY), allows=True)
    may = of(book)
    assert not may.may_publish(b"a/1")
    assert not may.may_publish(b"b")
    steps.run(3)
    book.change(rules, {"bob": Account(publish=False)}, allows=True)  # a user is another one meanwhile: at once
    assert not of(book, "bob").may_publish(b"open/1")
    assert not may.may_publish(b"b")
    steps.run()
    assert may.may_publish(b"b")
    assert not may.may_publish(b"a/1")


def test_few_rules_count_at_once_whatever_was_on_its_way():
    book = make_book(allows=True)
    steps = Steps(book)
    change(book, *many(), allows=True)
    steps.run(3)
    change(book, DENY, allows=True)
    assert not of(book).may_publish(b"a/1")
    steps.run()
    assert not of(book).may_publish(b"a/1")
    assert steps.whole_count == 0


def test_names_are_indexed_in_steps_too():
    rules = [{"permit": "allow", "names": [f"q{i}*"], "actions": ["read"]} for i in range(1_100)]
    book = make_book(*rules, allows=False)
    steps = Steps(book)
    change(book, *rules, {"permit": "allow", "names": ["jobs"]}, allows=False)
    assert steps.run() > 6
    assert of(book).may_read(b"/", b"jobs")
    assert of(book).may_read(b"/", b"q77x")
    assert not of(book).may_read(b"/", b"other")


def note_indexes(monkeypatch):
    """Return a list that gets an item for each index of many rules that is made."""
    made = []

    def noting(real):
        def note(rule_set, *args):
            if len(rule_set) >= 1_000:
                made.append(args)
            return real(rule_set, *args)

        return note

    for name in ("_index_names", "_index_topics"):
        monkeypatch.setattr(rules_module.RuleSet, name, noting(getattr(rules_module.RuleSet, name)))
    return made


def test_question_after_a_change_of_many_rules_makes_no_index(monkeypatch):
    rules = [{"permit": "allow", "kinds": ["group"], "names": [f"q{i}"]} for i in range(1_100)]
    vhosts = {"permit": "deny", "vhosts": ["v"], "names": ["x"]}
    book = make_book(*rules, vhosts, allows=False)
    may = of(book)
    assert not may.may_read(b"v", b"y")
    steps = Steps(book)
    change(book, *rules, vhosts, {"permit": "allow", "kinds": ["group", "topic"], "names": ["jobs"]}, allows=False)
    steps.run()
    made = note_indexes(monkeypatch)
    may = of(book)
    for kind in ("topic", "group"):
        assert may.may_read(b"/", b"jobs", kind)
        assert may.may_write(b"/", b"jobs", kind)
        assert may.may_configure(b"/", b"jobs", kind)
    assert not may.may_read(b"/", b"jobs", "cluster")
    assert not may.may_read(b"/", b"jobs")
    assert not may.may_read(b"v", b"x")
    assert not may.may_publish(b"a")
    assert not may.may_subscribe(b"a")
    assert made == []


def test_first_question_of_a_virtual_host_makes_no_index_of_many_rules(monkeypatch):
    everywhere = [{"permit": "allow", "names": [f"q{i}"]} for i in range(1_100)]
    named = [{"permit": "allow", "vhosts": ["plant-*"], "names": [f"p{i}"]} for i in range(1_100)]
    book = make_book(allows=False)
    steps = Steps(book)
    change(book, *everywhere, *named, allows=False)
    assert steps.run() > 20
    made = note_indexes(monkeypatch)
    may = of(book)
    for vhost, name, is_allowed in ((b"new", b"q7", True), (b"new", b"p7", False), (b"plant-1", b"p7", True)):
        assert may.may_read(vhost, name) is is_allowed
        assert may.may_configure(vhost, name) is is_allowed
    assert may.may_write(b"plant-2", b"q1099")
    assert made == []


def test_nothing_is_made_of_many_rules_before_the_first_step(monkeypatch):
    said = [RuleSettings.model_validate(one) for one in many(DENY)]
    lists = RuleLists([], lambda: None)
    book = make_book(allows=True)
    steps = Steps(book)
    lists.use(said)
    real, made = rule_draft.make_rule, []
    monkeypatch.setattr(rule_draft, "make_rule", lambda *args: made.append(1) or real(*args))
    book.change(lists.all, {}, allows=True)
    assert made == []
    assert of(book).may_publish(b"a/1")
    assert steps.run() > 10
    assert not of(book).may_publish(b"a/1")
    lists.use([*said, RuleSettings(permit="deny", topics=("b/#",))])
    book.change(lists.all, {}, allows=True)
    assert of(book).may_publish(b"b/1")
    steps.run()
    assert not of(book).may_publish(b"b/1")


def test_answer_that_cannot_wait_has_the_rules_count_now():
    book = make_book(allows=True)
    steps = Steps(book)
    book.finish()
    change(book, *many(DENY), allows=True)
    steps.run(2)
    book.finish()
    assert not of(book).may_publish(b"a/1")
    assert steps.whole_count == 1
    steps.run()
    assert steps.whole_count == 1


def test_user_who_is_gone_may_nothing_also_where_it_was_asked_about_before():
    book = make_book(accounts={"ann": Account()})
    ann = of(book, "ann")
    assert ann.may_publish(b"a")
    assert of(book, "ann").may_publish(b"a")
    change(book, accounts={})
    for may in (ann, of(book, "ann")):
        assert not may.may_publish(b"a")
        assert not may.may_subscribe(b"a")
        assert not may.may_configure(b"/", b"q")
    change(book, accounts={"ann": Account()})
    assert of(book, "ann").may_publish(b"a")


def test_permissions_that_let_read_less_are_a_loss_and_others_are_none():
    accounts = {"ann": Account(), "bob": Account()}
    every = {"/": NameRow(".*", ".*", ".*")}
    book = make_book(accounts=accounts)
    book.change([], accounts, {name: UserRows(name, every, {}) for name in accounts}, allows=True)
    ann, bob = of(book, "ann"), of(book, "bob")
    rows = {"ann": UserRows("ann", {"/": NameRow(".*", ".*", "^a")}, {}), "bob": UserRows("bob", every, {})}
    book.change([], accounts, rows, allows=True)
    for may in (ann, bob):
        may.find_version()
    assert (ann.has_lost, bob.has_lost) == (True, False)


@pytest.mark.parametrize("allows", [True, False])
def test_guest_has_the_first_virtual_host_until_it_is_told_what_it_may_do_there(allows):
    book = make_book(allows=allows)
    every, some = NameRow(".*", ".*", ".*"), NameRow("", "", "^a")
    book.change([], {}, {"guest": UserRows("guest", {"v": every}, {})}, allows=allows)
    may = of(book, "guest")
    assert [may.may_enter(vhost) for vhost in (b"/", b"v", b"w")] == [allows, True, False]
    assert may.may_configure(b"/", b"q") == may.may_publish(b"a/b") == allows
    book.change([], {}, {"guest": UserRows("guest", {"/": some, "v": every}, {})}, allows=allows)
    assert [may.may_read(b"/", name) for name in (b"a", b"b")] == [True, False]
    assert not may.may_configure(b"/", b"q")


def test_users_have_no_virtual_host_that_they_were_not_given():
    accounts = {"ann": Account(), "guest": Account()}
    book = make_book(accounts=accounts)
    rows = {name: UserRows(name, {"v": NameRow(".*", ".*", ".*")}, {}) for name in accounts}
    book.change([], accounts, rows, allows=True)
    assert not any(of(book, name).may_enter(b"/") for name in accounts)


def test_guest_that_is_told_less_of_its_first_virtual_host_has_lost_something():
    book, every = make_book(allows=True), NameRow(".*", ".*", ".*")
    book.change([], {}, {"guest": UserRows("guest", {"v": every}, {})}, allows=True)
    may = of(book, "guest")
    assert may.may_read(b"/", b"q")
    book.change([], {}, {"guest": UserRows("guest", {"v": every, "/": NameRow("", "", "")}, {})}, allows=True)
    may.find_version()
    assert may.has_lost
    book.change([], {}, {"guest": UserRows("guest", {"v": every, "/": every, "w": every}, {})}, allows=True)
    may = of(book, "guest")
    book.change([], {}, {"guest": UserRows("guest", {"v": every, "w": every}, {})}, allows=True)
    may.find_version()
    assert not may.has_lost  # it keeps the first one


@pytest.mark.asyncio
async def test_step_that_fails_is_told_and_leaves_the_rules_before_in_force(monkeypatch, caplog):
    book = make_book(DENY, allows=True, accounts={"ann": Account(), "bob": Account()})
    may, ann, bob, eve = of(book), of(book, "ann"), of(book, "bob"), of(book, "eve")
    steps = Steps(book)
    assert not may.may_publish(b"a/1")
    assert bob.may_publish(b"b/1")
    change(book, *many(), allows=True, accounts={"ann": Account(publish=False), "eve": Account()})
    waiting = asyncio.create_task(book.whole())
    await asyncio.sleep(0)
    steps.run(3)
    monkeypatch.setattr(rules_module, "PATTERNS_A_STEP", 0)
    assert steps.run() < 3
    for waits in (waiting, book.whole()):
        with pytest.raises(RulesError, match="not in force"):
            await waits
    assert "no index of the rules can be made, those before stay in force rules=1100" in caplog.text
    assert not may.may_publish(b"a/1")
    assert may.may_publish(b"b/1")
    assert not any(user.may_publish(b"b/1") for user in (ann, bob, eve))
    monkeypatch.undo()
    change(book, *many(), allows=True, accounts={"eve": Account()})
    steps.run()
    await book.whole()
    assert may.may_publish(b"a/1")
    assert eve.may_publish(b"a/1")
    assert steps.whole_count == 2


@pytest.mark.asyncio
async def test_few_rules_after_a_step_that_failed_are_in_force_at_once(monkeypatch):
    book = make_book(allows=True)
    steps = Steps(book)
    monkeypatch.setattr(rules_module, "PATTERNS_A_STEP", 0)
    change(book, *many(), allows=True)
    with pytest.raises(RulesError):
        book.finish()
    assert steps.run() == 1
    assert of(book).may_publish(b"a/1")
    monkeypatch.undo()
    change(book, DENY, allows=True)
    book.finish()
    await book.whole()
    assert not of(book).may_publish(b"a/1")
