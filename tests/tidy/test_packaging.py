"""What the package says of itself agrees with what is built, and with what there is."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.support.sources import PACKAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_package_is_for_the_pythons_that_wheels_are_made_for():
    tree = ast.parse((ROOT / "wheels" / "make.py").read_text())
    (versions,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VERSIONS"
    ]
    said = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert said == list(versions)
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


def test_the_package_says_that_it_has_types_and_has_the_file_that_tells_checkers_so():
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]
    assert all((ROOT / package / "py.typed").is_file() for package in PACKAGES)
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["*"]


def test_the_package_has_a_page_a_licence_and_what_finds_pytest_its_fixtures():
    project = PROJECT["project"]
    assert all((ROOT / path).is_file() for path in (project["readme"], *project["license-files"]))
    assert project["description"]
    for entry in (project["scripts"]["lmq"].partition(":")[0], project["entry-points"]["pytest11"]["lmq"]):
        assert (ROOT / entry.replace(".", "/")).with_suffix(".py").is_file()
