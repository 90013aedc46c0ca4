"""The pages of docs/reference are those that the code writes now, and leave nothing out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema_rs import Draft202012Validator

from fairlane_client.problems import PROBLEMS as TYPES
from handlers.effects.notice import notice
from handlers.jobs.words.job import EndReason, Lane, Waiting
from handlers.jobs.words.metrics import Metric
from handlers.web.routes import ROUTES
from infra.settings import DeploySettings
from scripts.reference import events, examples, metrics, problems, settings, words
from scripts.reference.docstrings import under
from scripts.reference.pages import FOLDER, pages
from scripts.reference.recording import Ear, recording
from tests.support.openapi import check_answer

if TYPE_CHECKING:
    from pathlib import Path


def differing(folder: Path) -> list[str]:
    """Names of the pages that the code would write otherwise, and of files that it would not."""
    there = {path.name for path in folder.iterdir()}
    old = [
        name
        for name, text in pages().items()
        if name in there and (folder / name).read_text(encoding="utf-8") != text
    ]
    return sorted({*old, *(there ^ pages().keys())})


def test_the_pages_are_what_the_code_says_now() -> None:
    assert differing(FOLDER) == [], "make reference"


def test_a_page_that_is_old_missing_or_nobodys_is_found(tmp_path: Path) -> None:
    for name, text in pages().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert differing(tmp_path) == []
    (tmp_path / "errors.md").write_text("# Errors\n", encoding="utf-8")
    (tmp_path / "metrics.md").unlink()
    (tmp_path / "more.md").touch()
    assert differing(tmp_path) == ["errors.md", "metrics.md", "more.md"]


# --- settings -----------------------------------------------------------------------------------


def leaves(values: dict[str, Any], path: str = "") -> set[str]:
    found = set()
    for name, value in values.items():
        full = f"{path}.{name}".lstrip(".")
        found |= leaves(value, full) if isinstance(value, dict) and value else {full}
    return found


def test_every_setting_is_listed() -> None:
    named = set(settings.names())
    asked = {"profile": "dev", "auth": {"auth_jwks_url": "https://a/b", "auth_issuer": "a"}}
    asked["auth"] = {**asked["auth"], "auth_audience": "c"}  # type: ignore[dict-item]
    made = DeploySettings.read(asked).model_dump()
    assert leaves(made) - {"vpc", "bulk_lane.repository"} <= named
    assert len(named) == len(settings.names())


def test_words_are_only_for_settings_that_are_there() -> None:
    known = {*settings.names(), *(path for path, _ in settings._groups(DeploySettings))}
    starred = {f"timing.*.{name.rpartition('.')[2]}" for name in known if "timing.small." in name}
    assert set(words.SETTINGS) <= known | starred


# --- the API ------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_has_a_request_that_is_answered_as_documented(route: Any) -> None:
    shown = examples.examples()[route.name]
    assert shown.status in {status.value for status in route.answers}
    answered = {"x-request-id": "1", "content-type": "application/json"}
    answered |= {name.lower(): value for name, value in shown.answered.items()}
    check_answer(shown.method, shown.path, shown.status, answered, shown.answer)


def test_nothing_is_recorded_for_a_route_that_is_not_there() -> None:
    assert set(examples.examples()) == {route.name for route in ROUTES}


# --- names ----------------------------------------------------------------------------------------


def test_every_code_has_a_status_words_and_an_exception() -> None:
    assert set(words.PROBLEMS) == set(problems.codes()) == set(TYPES)
    assert all(problems.statuses()[code] for code in problems.codes())


def test_every_reason_and_metric_has_words_of_one_kind() -> None:
    assert set(problems.ends()) == {each.value for each in EndReason}
    assert set(under(Waiting)) >= {each.name for each in Waiting}
    assert set(metrics.texts()) >= {each.name for each in Metric}
    assert not {name for name in words.ENDS if name.upper() in under(EndReason)}
    # EVENTS_OPEN has a docstring, about four of them.
    assert set(words.METRICS) & set(under(Metric)) == {"EVENTS_OPEN"}


# --- what is sent -------------------------------------------------------------------------------


def validator(model: str) -> Draft202012Validator:
    return Draft202012Validator(
        {
            "$ref": f"#/components/schemas/{model}",
            "components": events.document()["components"],
        },
        validate_formats=True,
    )


def test_what_is_sent_is_as_the_document_of_webhooks_says() -> None:
    ear = Ear()
    with recording(ear) as api:
        examples.load(api)
        for subject, ids in (("a", ["sku-1", "sku-2"]), ("b", ["sku-3"])):
            body = {
                "operation": "adjust_number",
                "subject": subject,
                "params": examples.RAISE,
                "ids": ids,
                "tolerated_failure_percent": 0,
                "labels": {"team": "pricing"},
            }
            assert api.call("POST", "/v1/jobs", body).status == 202
            api.work(Lane.SMALL)
    sent = [json.loads(event.detail) for event in ear.events]
    assert [each["job"]["state"] for each in sent if each["event"] == "ended"] == [
        "SUCCEEDED",
        "FAILED",
    ]
    for each in sent:
        validator("JobEvent").validate(each)
    [batch] = ear.batches
    validator("RecordsChanged").validate(json.loads(notice(batch)))


def test_a_field_that_the_document_does_not_name_is_found() -> None:
    assert not validator("RecordsChanged").is_valid({"key": "k"})
    assert not validator("ChangedRecord").is_valid({"id": "a", "version": 1, "gone": 0})
    assert not validator("ChangedRecord").is_valid(
        {"id": "a", "version": 1, "gone": False, "price": 1}
    )
