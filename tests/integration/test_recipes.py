"""The programs of docs/recipes.md, as they are written, print what stands below them."""

from __future__ import annotations

import re

import pytest

from gateway.settings import AdminSettings, AmqpSettings, MqttSettings
from tests.support.gateway import running_gateway
from tests.support.sources import ROOT

SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
PROGRAM = re.compile(r"```python\n(.*?)asyncio\.run\(main\(\)\)\n```\n\n```text\n(.*?)```", re.DOTALL)
PAGE = (ROOT / "docs" / "recipes.md").read_text()
TITLES = SECTION.findall(PAGE)
TEXTS = SECTION.split(PAGE)[2::2]


@pytest.mark.asyncio
@pytest.mark.parametrize(("title", "text"), list(zip(TITLES, TEXTS, strict=True)), ids=TITLES)
async def test_a_recipe_does_what_it_says(tmp_path, capsys, title, text):
    ((program, expected),) = PROGRAM.findall(text)
    async with running_gateway(
        tmp_path / "data",
        mqtt=MqttSettings(listen="off"),
        amqp=AmqpSettings(listen="off"),
        admin=AdminSettings(listen="off"),
    ) as gateway:
        host, port = gateway.listening["namesrv"]
        names = {"__name__": "recipe"}
        exec(compile(program.replace("127.0.0.1:9876", f"{host}:{port}"), title, "exec"), names)
        await names["main"]()
    assert capsys.readouterr().out == expected


def test_no_program_of_the_page_is_left_out():
    assert PAGE.count("```python\n") == len(TITLES)
