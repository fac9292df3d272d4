from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from gateway.admin.routes import Routes, find_methods

INNER, OUTER = Routes("/things", ("things",)), Routes("/api", ("all",))


@INNER.get("/{name}")
@INNER.put("/{name}", status_code=201)
@INNER.post("/{name}", status_code=202)
@INNER.delete("/{name}", status_code=200, include_in_schema=False)
@INNER.head("/{name}")
async def answer(name: str) -> dict[str, str]:
    return {"name": name}


@OUTER.get("/things/all")
async def answer_all() -> dict[str, str]:
    return {"name": "not reached, as the other path is said first"}


def make():
    api, outer = FastAPI(), Routes("/api", ("all",))
    outer.include(INNER)
    outer.add_to(api)
    OUTER.add_to(api)
    return api


@pytest.mark.asyncio
async def test_routes_answer_below_all_prefixes_in_the_order_in_which_they_are_said():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make()), base_url="http://here") as client:
        wanted = {"GET": 200, "PUT": 201, "POST": 202, "DELETE": 200, "HEAD": 200, "PATCH": 405}
        for method, status in wanted.items():
            assert (await client.request(method, "/api/things/one")).status_code == status
        assert (await client.get("/api/things/all")).json() == {"name": "all"}
        assert (await client.get("/things/one")).status_code == 404


def test_the_description_has_a_route_under_the_tags_of_all_that_include_it():
    paths = make().openapi()["paths"]
    assert set(paths) == {"/api/things/{name}", "/api/things/all"}
    assert set(paths["/api/things/{name}"]) == {"get", "put", "post", "head"}
    assert paths["/api/things/{name}"]["get"]["tags"] == ["all", "things"]


def test_each_application_has_its_own_routes():
    first, second = make(), make()
    assert len(first.routes) == len(second.routes)
    assert not {id(route) for route in first.routes} & {id(route) for route in second.routes}


def test_the_methods_of_a_path_are_those_of_all_its_routes():
    api = make()
    assert find_methods(api, "/api/things/one") == ["DELETE", "GET", "HEAD", "POST", "PUT"]
    assert find_methods(api, "/api/others") == []
