"""The programs of docs/recipes.md, as they are written, print what stands below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from gateway.settings.models import AdminSettings, AmqpSettings, MqttSettings
from tests.support.gateway import running_gateway
from tests.support.sources import ROOT

SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
PROGRAM = re.compile(r"```python\n(.*?)asyncio\.run\(main\(\)\)\n```\n\n```text\n(.*?)```", re.DOTALL)
PAGE = (ROOT / "docs" / "recipes.md").read_text()
TITLES = SECTION.findall(PAGE)
TEXTS = SECTION.split(PAGE)[2::2]


@pytest.mark.asyncio
@pytest.mark.parametrize(("title", "text"), list(zip(TITLES, TEXTS, strict=True)), ids=TITLES)
@pytest.mark.here(reason="a pull that does not wait is told to come again for what is on its way")
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


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="there is no mypy")
def test_programs_of_the_page_are_typed_as_strictly_as_there_is(tmp_path):
    files = []
    for number, text in enumerate(TEXTS):
        files.append(tmp_path / f"recipe_{number}.py")
        files[-1].write_text(text.split("```python\n")[1].split("```")[0])
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", tmp_path / "cache"]
    run = subprocess.run(
        [*command, *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
