"""Effects in the API: how many are undone, and the request to try parked ones again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.effect import Batch, Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.limits import Limits

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment


@dataclass
class Outside:
    down: bool = True

    def deliver(self, batch: Batch) -> Delivered:
        if self.down:
            raise Transient("down")
        return Delivered()


def test_parked_effects_are_counted_and_replayed_when_asked(stack: Deployment) -> None:
    outside = Outside()
    world = replace(stack.world, sinks={"webhook": outside}, limits=Limits(max_effect_tries=1))
    id_ = stack.created(stack.fill(3))
    [delivery] = stack.receive()
    on_message(world, delivery, Worker("w"))
    url = f"/v1/jobs/{id_}"
    view = stack.call("GET", url).body
    assert (view["state"], view["waiting_reason"]) == ("SETTLING", "effects_parked")
    assert view["effects"] == {"open": 0, "done": 0, "parked": 1, "refused": 0}

    assert stack.call("POST", f"{url}/effects/replay", tenant="another").status == 404
    answer = stack.call("POST", f"{url}/effects/replay")
    assert (answer.status, answer.body["effects"]["open"]) == (202, 1)
    assert "waiting_reason" not in answer.body
    again = stack.call("POST", f"{url}/effects/replay")
    assert (again.status, again.body["effects"]) == (200, answer.body["effects"])

    outside.down = False
    Recovery(world).run()
    view = stack.call("GET", url).body
    assert view["state"] == "SUCCEEDED"
    assert view["effects"] == {"open": 0, "done": 1, "parked": 0, "refused": 0}


def test_without_effects_nothing_is_said_of_them(stack: Deployment) -> None:
    id_ = stack.created(stack.fill(1))
    stack.run()
    assert "effects" not in stack.call("GET", f"/v1/jobs/{id_}").body
    assert stack.call("POST", f"/v1/jobs/{id_}/effects/replay").status == 409


def test_what_cannot_be_a_job_id_is_404(stack: Deployment) -> None:
    assert stack.call("POST", "/v1/jobs/x/effects/replay").status == 404
