from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("pyarrow")

from spark_analytics.report.page import render_page, write_page
from tests.support.fan_out_oracle import Sent, random_messages
from tests.support.reports import made_summary

pytestmark = pytest.mark.slow
HOSTILE = "<script>alert(1)</script>\"'&\u202e\x00"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = set()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.addresses += [value for name, value in attrs if name in {"src", "href"} or "url(" in (value or "")]


def tags_of(page):
    parser = Tags()
    parser.feed(page)
    return parser


def test_the_page_stands_by_itself(tmp_path):
    write_page(made_summary(random_messages(3, 500), tmp_path), tmp_path / "index.html")
    found = tags_of((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert not found.names & {"script", "link", "img", "iframe"}
    assert all(re.fullmatch(r"url\(#\w+\)|.*url\(#\w+\).*|#\w+", address) for address in found.addresses)


def test_contents_come_in_the_order_that_a_reader_expects(tmp_path):
    page = render_page(made_summary(random_messages(3, 500), tmp_path))
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "How far a message goes", "Over time", "What it takes on disk", "Devices", "Light queues", "Topics",
        "Changed devices", "Data quality", "How this was made",
    ]  # fmt: skip


def test_names_of_peers_are_text_and_nothing_else(tmp_path):
    messages = [Sent(HOSTILE, HOSTILE, (HOSTILE,), 1_790_000_000_000, 200, 10, 20, protocol=HOSTILE)]
    page = render_page(made_summary(messages, tmp_path))
    assert "script" not in tags_of(page).names
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;\\u202e\\u0000") == 4
    assert "\u202e" not in page


def test_an_empty_log_says_so(tmp_path):
    page = render_page(made_summary([], tmp_path))
    assert "Nothing here yet" in page
    assert "<svg" not in page
