"""Templates, each synthesised once."""

from __future__ import annotations

import pytest

from handlers.jobs.words.timing import Timing
from infra.settings import DeploySettings

from .synthesis import JOINED, OWN_OPERATIONS, PRINCIPALS, Synthesised, settings_of, synthesise


@pytest.fixture(scope="session")
def stack() -> Synthesised:
    """With the defaults of production."""
    return synthesise(settings_of())


@pytest.fixture(scope="session")
def other() -> Synthesised:
    """No bulk worker when there is nothing to do, no reserved concurrency, a NAT gateway, a
    records table that was there before, no web ACL, and operations of
    the team's own, which require something."""
    return synthesise(
        settings_of(
            operations=str(OWN_OPERATIONS),
            bulk_lane={"min_tasks": 0, "network": "nat"},
            small_lane={"reserved_concurrency": None},
            records={"table_name": "products", "tenant_key": "owner", "id_key": "sku"},
            waf={"mode": "off"},
            deletion_protection=True,
        )
    )


@pytest.fixture(scope="session")
def signed() -> Synthesised:
    """Callers sign with IAM."""
    return synthesise(settings_of(auth=None, principals=PRINCIPALS))


@pytest.fixture(scope="session")
def dev() -> Synthesised:
    """What cdk.json asks for as it is: to try it out on an empty account."""
    return synthesise(DeploySettings.read({"profile": "dev"}))


@pytest.fixture(scope="session")
def joined() -> Synthesised:
    """Joined to what an account has already: a network, a search domain inside it, a records table,
    a secret and an image, all with keys of their own, and callers of two accounts."""
    return synthesise(settings_of(**JOINED))


@pytest.fixture(scope="session")
def unsound() -> Synthesised:
    """From settings that contradict each other, past their checks: what relations must see."""
    sound = settings_of()
    small = sound.timing.small.model_copy(
        update={"visibility": 120, "max_receive_count": 3, "dlq_retention": 4 * 86_400}
    )
    bulk = sound.timing.bulk.model_copy(
        update={"max_receive_count": 3, "dlq_retention": 4 * 86_400}
    )
    settings = sound.model_copy(
        update={
            "timing": sound.timing.model_copy(update={"small": small, "bulk": bulk}),
            "small_lane": sound.small_lane.model_copy(update={"reserved_concurrency": 50}),
        }
    )
    with pytest.MonkeyPatch.context() as unchecked:
        unchecked.setattr(Timing, "check", lambda _: None)
        return synthesise(settings)
