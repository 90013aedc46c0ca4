"""Checks of what AWS says of a stack, against the settings that its functions have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from handlers.jobs.words.job import Lane
from handlers.jobs.words.timing import BrokenRelation, Timing
from handlers.settings import PREFIX, SettingsError, WorkSettings

from .finding import Finding, note, ok, wrong

REDEPLOY: Final = "deploy the stack again, with one version for all of it"
OWN: Final = ("FAIRLANE_AUTH_", "FAIRLANE_CALLER_", "FAIRLANE_BULK_SERVICE")
"""Variables that not every function has."""


@dataclass(frozen=True)
class Function:
    """A function of the stack, as Lambda describes it."""

    part: str
    """Its logical id in the stack."""
    variables: Mapping[str, str]
    code: str
    """The hash of its code."""
    runtime: str
    timeout: int
    state: str = "Active"
    reserved: int | None = None
    role: str = ""
    """The name of its role."""


@dataclass(frozen=True)
class Service:
    """The bulk workers, as ECS describes their service."""

    desired: int
    running: int
    rollouts: Sequence[str] = ("COMPLETED",)
    """The rollout states of its deployments, the newest first."""


@dataclass(frozen=True)
class Resources:
    """What was read of the stack. Queues and mappings are as AWS answers."""

    functions: Sequence[Function]
    queues: Mapping[Lane, Mapping[str, str]]
    """Attributes of the lanes' queues."""
    dead_letters: Mapping[Lane, Mapping[str, str]]
    mapping: Mapping[str, Any] | None
    """The event source mapping of the small lane."""
    schedule: str | None
    """ENABLED or DISABLED: the rule that runs recovery."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """The status of each table, and of its indexes as table/index."""
    service: Service | None = None
    """None where there is no such service, as on a local stack."""

    def function(self, part: str) -> Function | None:
        return next((each for each in self.functions if part in each.part), None)


def check_stack(seen: Resources) -> Iterator[Finding]:
    settings = None
    try:
        settings = _settings(seen)
    except SettingsError as error:
        # A broken relation names both settings.
        yield wrong("settings", f"the functions do not start with their settings: {error}")
    else:
        yield ok("settings", "recovery's settings are valid, and their timing relations hold")
    yield from _variables(seen)
    yield from _versions(seen)
    if settings is not None:
        yield from _timing(seen, settings.timing)
    yield from _mapping(seen)
    yield from _schedule(seen)
    yield from _tables(seen)
    yield from _service(seen)


def _settings(seen: Resources) -> WorkSettings | None:
    """Raises SettingsError."""
    recovery = seen.function("RecoveryFunction")
    if recovery is None:
        return None
    try:
        return WorkSettings.from_env(recovery.variables)
    except BrokenRelation as error:
        raise SettingsError(str(error)) from error


def _variables(seen: Resources) -> Iterator[Finding]:
    """One setting has one value in all functions."""
    values: dict[str, dict[str, list[str]]] = {}
    for function in seen.functions:
        for name, value in function.variables.items():
            if name.startswith(PREFIX) and not name.startswith(OWN):
                values.setdefault(name, {}).setdefault(value, []).append(function.part)
    different = {name: found for name, found in values.items() if len(found) > 1}
    for name, found in sorted(different.items()):
        said = "; ".join(f"{value} in {', '.join(parts)}" for value, parts in found.items())
        yield wrong("settings", f"{name} differs between functions: {said}", REDEPLOY)
    if not different:
        yield ok("settings", "all functions have the same")


def _versions(seen: Resources) -> Iterator[Finding]:
    for what, of in (("code", "code"), ("runtime", "runtime")):
        found: dict[str, list[str]] = {}
        for function in seen.functions:
            found.setdefault(str(getattr(function, of)), []).append(function.part)
        if len(found) > 1:
            said = "; ".join(f"{value}: {', '.join(parts)}" for value, parts in found.items())
            yield wrong("versions", f"functions have different {what}: {said}", REDEPLOY)
    for function in seen.functions:
        if function.state != "Active":
            yield wrong("versions", f"{function.part} is {function.state}, so nothing runs it")
    if seen.functions:
        yield ok("versions", f"{len(seen.functions)} functions were looked at")


def _timing(seen: Resources, timing: Timing) -> Iterator[Finding]:
    """What the relations hold for is what the queues and the function really have."""
    differs = False
    for lane in Lane:
        of = timing.lane(lane)
        attributes, letters = seen.queues.get(lane, {}), seen.dead_letters.get(lane, {})
        redrive = attributes.get("RedrivePolicy", "")
        expected = {
            "VisibilityTimeout": (attributes, of.visibility),
            "MessageRetentionPeriod": (attributes, of.queue_retention),
        }
        for name, (have, setting) in expected.items():
            if name in have and int(have[name]) != round(setting):
                differs = True
                yield wrong(
                    "timing",
                    f"the {lane} queue's {name} is {have[name]}, and the setting is "
                    f"{round(setting)}",
                    REDEPLOY,
                )
        if attributes and f'"maxReceiveCount":{of.max_receive_count}' not in _packed(redrive):
            differs = True
            yield wrong(
                "timing",
                f"the {lane} queue has the redrive policy {redrive or 'none'}, and the setting "
                f"max_receive_count is {of.max_receive_count}",
                REDEPLOY,
            )
        kept = letters.get("MessageRetentionPeriod")
        if kept is not None and int(kept) <= of.queue_retention:
            differs = True
            yield wrong(
                "timing",
                f"dead letters of the {lane} lane are kept {kept} s, which must be more than the "
                f"queue's {of.queue_retention} s: SQS counts from the first send",
                REDEPLOY,
            )
    small = seen.function("SmallLane")
    if small is not None and small.timeout != timing.function_timeout:
        differs = True
        yield wrong(
            "timing",
            f"the small lane's function may run {small.timeout} s, and the setting "
            f"function_timeout is {timing.function_timeout}",
            REDEPLOY,
        )
    if not differs:
        yield ok("timing", "queues and functions have the times of the settings")


def _packed(text: str) -> str:
    return text.replace(" ", "").replace(':"', ":").replace('",', ",").replace('"}', "}")


def _mapping(seen: Resources) -> Iterator[Finding]:
    check, mapping = "small lane", seen.mapping
    if mapping is None:
        yield wrong(check, "no event source mapping gives the queue's messages to the function")
        return
    state = str(mapping.get("State", ""))
    if state not in {"Enabled", "Enabling", "Creating", "Updating"}:
        yield wrong(
            check, f"its event source mapping is {state}: no small job starts", "SmallDwell"
        )
    if "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", []):
        yield wrong(
            check,
            "its event source mapping does not report single failures, so kept messages are lost",
            REDEPLOY,
        )
    small = seen.function("SmallLane")
    most = (mapping.get("ScalingConfig") or {}).get("MaximumConcurrency")
    if small and small.reserved is not None and most is not None and most > small.reserved:
        yield wrong(
            check,
            f"up to {most} messages are given to {small.reserved} reserved executions: throttled "
            "ones use up receives",
            "SmallThrottles in docs/runbook.md",
        )
    if state == "Enabled":
        yield ok(check, "its event source mapping is enabled")


def _schedule(seen: Resources) -> Iterator[Finding]:
    recovery = seen.function("RecoveryFunction")
    if recovery is not None and recovery.reserved == 0:
        yield wrong("recovery", "its function has no concurrency, so it never runs")
    if seen.schedule is None:
        yield wrong("recovery", "no rule runs it", "RecoveryStopped in docs/runbook.md")
    elif seen.schedule != "ENABLED":
        yield wrong(
            "recovery", f"its rule is {seen.schedule}", "RecoveryStopped in docs/runbook.md"
        )
    else:
        yield ok("recovery", "its rule is enabled")


def _tables(seen: Resources) -> Iterator[Finding]:
    for name, status in seen.tables.items():
        if status != "ACTIVE":
            yield wrong("tables", f"{name} is {status}")
    if seen.tables and set(seen.tables.values()) == {"ACTIVE"}:
        yield ok("tables", "all tables and indexes are active")


def _service(seen: Resources) -> Iterator[Finding]:
    service = seen.service
    if service is None:
        return
    said = f"{service.running} of {service.desired} tasks run"
    if service.rollouts[:1] == ["FAILED"] or "FAILED" in service.rollouts[:1]:
        yield wrong("bulk lane", "its last deployment failed", "BulkWithoutWorkers")
    if service.desired and not service.running:
        yield wrong("bulk lane", said, "BulkWithoutWorkers in docs/runbook.md")
    elif len(service.rollouts) > 1:
        yield note("bulk lane", f"{said}; a deployment is under way, so two versions work")
    else:
        yield ok("bulk lane", said)
