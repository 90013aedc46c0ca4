"""What a deployment offers: operations and lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment


def test_operations_say_what_they_take(stack: Deployment) -> None:
    listed = {each["name"]: each for each in stack.call("GET", "/v1/operations").body["operations"]}
    assert set(listed) == set(stack.world.operations)
    for name, each in listed.items():
        model = stack.world.operations[name].parameters
        assert each["parameters"] == model.model_json_schema()
        assert each["description"]
        assert each["sinks"] == []  # this deployment has none


def test_lanes_show_everybodys_depth_and_nobody_elses_jobs(stack: Deployment) -> None:
    ids = stack.fill(1)
    stack.created(ids, "done")
    stack.run()
    stack.created(ids, "mine")
    for n in range(3):
        stack.created(ids, f"s{n}", tenant="other")
    stack.receive()
    small, bulk = stack.call("GET", "/v1/lanes").body["lanes"]
    assert (small["lane"], bulk["lane"]) == ("small", "bulk")
    assert small["queue"] == {"waiting": 3, "in_flight": 1}
    assert bulk["queue"] == {"waiting": 0, "in_flight": 0}
    assert (small["yours"]["in_flight"], small["yours"]["held"]) == (1, 0)
    dwell = small["yours"]["dwell_ms"]
    assert dwell["jobs"] == 1
    assert dwell["p50"] == dwell["p95"] >= 0
    assert "dwell_ms" not in bulk["yours"]
    nobody = stack.call("GET", "/v1/lanes", tenant="new").body["lanes"][0]["yours"]
    assert (nobody["in_flight"], nobody["held"], "dwell_ms" in nobody) == (0, 0, False)
