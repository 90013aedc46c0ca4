"""The client against the API's OpenAPI document: every word, field, parameter, code and route."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from typer.main import get_command

import fairlane_client
from fairlane_client import Client, NewJob, NewUpload, models, requests, words
from fairlane_client.commands.jobs import app
from fairlane_client.problems import PROBLEMS, ApiProblem, problem_of
from handlers.jobs.words.limits import MAX_BODY_BYTES
from handlers.web.openapi_build import document
from tests.support.views import job_view

DOCUMENT: Final[Mapping[str, Any]] = document()
SCHEMAS: Final[Mapping[str, Any]] = DOCUMENT["components"]["schemas"]
OPERATIONS: Final = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}

ENUMS: Final = {
    words.State: "State",
    words.Lane: "Lane",
    words.EndReason: "EndReason",
    words.Waiting: "Waiting",
    words.PacedBy: "PacedBy",
    words.Verb: "Verb",
    words.Traversal: "Traversal",
    words.AskedTraversal: "Asked",
    words.ReportFormat: "ReportFormat",
    words.ReportOf: "ReportOf",
    words.UploadFormat: "Format",
}
ANSWERS: Final = {
    models.JobView: "JobAnswer",
    models.Progress: "Progress",
    models.EffectsView: "Effects",
    models.PaceView: "Pace",
    models.WaitView: "Wait",
    models.SinkWaitView: "SinkWait",
    models.RequestView: "Request",
    models.NotifyView: "NotifyAnswer",
    models.HistoryView: "HistoryEntry",
    models.JobPage: "JobPage",
    models.SubjectView: "SubjectAnswer",
    models.ItemView: "Item",
    models.ItemPage: "ItemPage",
    models.ReportView: "ReportAnswer",
    models.JobPreview: "Preview",
    models.Estimate: "Estimate",
    models.UploadAddress: "UploadAnswer",
    models.OperationView: "OperationAnswer",
    models.Operations: "Operations",
    models.QueueView: "Depth",
    models.DwellView: "Dwell",
    models.YoursView: "Yours",
    models.LaneView: "LaneAnswer",
    models.Lanes: "Lanes",
}
BODIES: Final = {NewJob: "JobRequest", NewUpload: "UploadRequest"}
PARTS_OF_BODIES: Final = {
    *("Filter", "Equality", "Membership", "Comparison", "Prefix", "Existence", "Notify")
}
"""Sent as plain mappings; the API checks them."""
PROBLEMS_OF_THE_DOCUMENT: Final = {
    *("ProblemAnswer", "FirewallAnswer", "ActiveJob", "FieldProblem")
}
OWN: Final = {"existing"}
"""The client's own fields."""

CALLS: Final[Mapping[str, tuple[Callable[..., Any], ...]]] = {
    "create_job": (Client.submit, Client.preview),
    "list_jobs": (Client.page, Client.jobs),
    "get_job": (Client.get, Client.watch),
    "list_items": (Client.item_page, Client.items),
    "create_report": (Client.report,),
    "cancel_job": (Client.cancel,),
    "pause_job": (Client.pause,),
    "resume_job": (Client.resume,),
    "replay_effects": (Client.replay_effects,),
    "retry_job": (Client.retry,),
    "create_upload": (Client.upload_address, Client.upload),
    "list_operations": (Client.operations,),
    "list_lanes": (Client.lanes,),
    "get_subject": (Client.subject,),
    "openapi": (Client.openapi,),
}
NAMED: Final = {"format": "form", "Idempotency-Key": "idempotency_key"}
"""Parameters that the client calls otherwise."""
OTHERWISE: Final = {("create_job", "validate_only"), ("get_job", "If-None-Match")}
"""What is no parameter of a call: ``preview`` is a call of its own, and nothing is cached."""


def kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """What a value may be, without names, bounds and texts. The words of an open list are those
    of the list."""
    if "$ref" in schema:
        return kind(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    if "enum" in schema:
        return sorted(schema["enum"])
    if "anyOf" in schema:
        parts = [kind(part, definitions) for part in schema["anyOf"] if part != {"type": "null"}]
        lists = [part for part in parts if isinstance(part, list)]
        return lists[0] if len(lists) == 1 and parts == [*lists, "string"] else parts[0]
    match schema.get("type"):
        case "array":
            return ("array", kind(schema["items"], definitions))
        case "object":
            fields = schema.get("properties")
            return "object" if fields is None else ("object", tuple(sorted({*fields} - OWN)))
        case other:
            return f"{other}/{schema['format']}" if "format" in schema else other


def described(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = model.model_json_schema()
    return schema


def fields(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kind(part, definitions) for name, part in schema["properties"].items()}


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("enum", "name"), ENUMS.items(), ids=ENUMS.values())
def test_words_are_those_of_the_document(enum: type[words.State], name: str) -> None:
    assert [each.value for each in enum] == SCHEMAS[name]["enum"]


def test_words_without_a_name_in_the_document_are_its_too() -> None:
    def of(operation: str, parameter: str) -> Any:
        [found] = [p for p in OPERATIONS[operation]["parameters"] if p["name"] == parameter]
        return found["schema"]["enum"]

    assert list(words.OnConflict) == of("create_job", "on_conflict")
    assert list(words.Outcome) == of("list_items", "outcome")
    assert list(words.Selection) == SCHEMAS["JobAnswer"]["properties"]["selection"]["enum"]


@pytest.mark.parametrize("name", ["state", "lane", "end_reason", "waiting_reason", "selection"])
def test_a_word_that_is_newer_than_the_client_is_read(name: str) -> None:
    job = job_view(**{name: "NEWER"})
    assert getattr(job, name) == job.as_json()[name] == "NEWER"
    assert not job.ended


def test_an_unknown_state_with_an_end_has_ended() -> None:
    assert job_view(state="EXPIRED", finished_at="2026-01-02T03:04:05Z").ended


# --- fields -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "name"), ANSWERS.items(), ids=ANSWERS.values())
def test_an_answer_has_the_fields_of_the_document(model: Any, name: str) -> None:
    own, theirs = described(model), SCHEMAS[name]
    have = fields(own, own.get("$defs", {}))
    assert {n: k for n, k in have.items() if n not in OWN} == fields(theirs, SCHEMAS)
    assert set(own.get("required", ())) == set(theirs.get("required", ()))
    optional = set(theirs["properties"]) - set(theirs.get("required", ()))
    assert all(model.model_fields[each].default is None for each in optional)


@pytest.mark.parametrize(("model", "name"), BODIES.items(), ids=BODIES.values())
def test_a_body_has_the_fields_of_the_document(model: Any, name: str) -> None:
    assert set(model.model_fields) == set(SCHEMAS[name]["properties"])
    required = {each for each, field in model.model_fields.items() if field.is_required()}
    assert required == set(SCHEMAS[name]["required"])


def test_every_schema_of_the_document_is_compared() -> None:
    compared = {*ENUMS.values(), *ANSWERS.values(), *BODIES.values()}
    assert set(SCHEMAS) == compared | PARTS_OF_BODIES | PROBLEMS_OF_THE_DOCUMENT


def test_limits_of_a_request_are_those_of_the_document() -> None:
    ids = SCHEMAS["JobRequest"]["properties"]["ids"]
    assert ids["maxItems"] == requests.INLINE_IDS
    assert ids["items"]["maxLength"] == requests.MAX_ID_BYTES
    assert MAX_BODY_BYTES == requests.BODY


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda job: job["properties"].update(new={"type": "string"}), "new"),
        (lambda job: job["properties"].pop("retry_of"), "retry_of"),
        (lambda job: job["properties"]["total"].update(type="string"), "total"),
        (lambda job: job["required"].remove("duplicates"), "duplicates"),
    ],
)
def test_another_document_is_seen(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], Any], where: str
) -> None:
    changed = document()["components"]["schemas"]
    change(changed["JobAnswer"])
    monkeypatch.setattr(f"{__name__}.SCHEMAS", changed)
    with pytest.raises(AssertionError, match=where):
        test_an_answer_has_the_fields_of_the_document(models.JobView, "JobAnswer")


# --- problems ---------------------------------------------------------------------------------


def codes() -> set[str]:
    named = ("ProblemAnswer", "FirewallAnswer")
    return {code for name in named for code in SCHEMAS[name]["properties"]["code"]["enum"]}


def test_every_code_has_a_type_of_its_own() -> None:
    assert set(PROBLEMS) == codes()
    kinds = {code: type(problem_of(418, {"code": code}, None)) for code in codes()}
    assert kinds == PROBLEMS
    assert ApiProblem not in kinds.values()
    together = {"throttled", "too_many_requests"}  # the gateway's word and the firewall's
    assert len(set(kinds.values())) == len(kinds) - len(together) + 1


def test_every_field_of_a_problem_can_be_read() -> None:
    within = {"type", "title", "instance", "answered_by"}  # in ``body``
    names = set(SCHEMAS["ProblemAnswer"]["properties"]) - within
    names = (names - {"active_job"}) | {"active_job_id"}
    problem = problem_of(409, {}, None)
    assert {name for name in names if not hasattr(problem, name)} == set()


# --- calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_route_and_parameter_has_a_call(operation: str) -> None:
    for call in CALLS[operation][:1]:
        takes = set(inspect.signature(call).parameters)
        for parameter in OPERATIONS[operation]["parameters"]:
            name = parameter["name"]
            if (operation, name) not in OTHERWISE:
                assert NAMED.get(name, name) in takes, f"{call.__qualname__}: {name}"


def test_iterators_take_the_filters_of_their_pages() -> None:
    for page, iterator in ((Client.page, Client.jobs), (Client.item_page, Client.items)):
        takes = set(inspect.signature(page).parameters) - {"page"}
        assert takes == set(inspect.signature(iterator).parameters)


@pytest.mark.parametrize(
    ("operation", "verb"),
    [("list_jobs", "list"), ("list_items", "items"), ("create_report", "report")],
)
def test_every_parameter_has_an_option(operation: str, verb: str) -> None:
    command = get_command(app).commands[verb]  # type: ignore[attr-defined]  # typer's group
    options = {name for each in command.params for name in each.opts}
    names = {parameter["name"] for parameter in OPERATIONS[operation]["parameters"]}
    paging = {"page", "limit"} if operation == "list_items" else {"page"}
    wanted = {f"--{name.replace('_', '-')}" for name in names - paging - {"job_id"}}
    assert wanted <= options


# --- the package ------------------------------------------------------------------------------


def test_every_public_name_is_there() -> None:
    for name in fairlane_client.__all__:
        assert getattr(fairlane_client, name).__name__ == name
    assert not hasattr(fairlane_client, "NoSuchName")
