"""Which places outside a deployment has, and which of them the sinks are made for."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import ValidationError

from handlers.bootstrap import sinks_of
from handlers.jobs.words.record_schema import RecordSchema
from handlers.settings import EffectSettings
from handlers.testing.runtime import ManualRuntime

HOOK: Final[dict[str, Any]] = {
    "webhook_url": "https://hooks.example/in",
    "webhook_secret_arn": "arn:aws:secret",
}


def test_none_configured_is_no_sink() -> None:
    assert sinks_of(EffectSettings(), RecordSchema(), ManualRuntime()) == {}


def test_what_is_configured_is_a_sink_and_nothing_is_made_of_it_yet() -> None:
    settings = EffectSettings(search_url="https://search.example", event_bus="bus", **HOOK)

    sinks = sinks_of(settings, RecordSchema(), ManualRuntime())

    assert sinks.keys() == {"search_index", "webhook", "event_bus"}
    assert all("_sink" not in vars(sink) for sink in sinks.values())


@pytest.mark.parametrize(
    "given",
    [
        {"webhook_url": "https://hooks.example"},
        {"webhook_secret_arn": "arn"},
        {**HOOK, "webhook_secret_parameter": "name"},
        {"webhook_url": "https://hooks.example", "webhook_secret": "x" * 32},
        {**HOOK, "webhook_url": "http://hooks.example"},
        {**HOOK, "webhook_url": "https://user:word@hooks.example"},
        {**HOOK, "webhook_url": "ftp://hooks.example"},
        {"webhook_url": "http://127.0.0.1", "webhook_secret": "short", "webhook_loopback": True},
        {"search_url": "http://search.example"},
        {"search_url": "http://127.0.0.1.search.example"},
        {"search_url": "http://localhost@search.example/"},
        {"search_url": "https://user:word@search.example"},
        {"search_url": ""},
        {"search_index": ""},
        {"event_bus": ""},
    ],
)
def test_what_is_unsafe_or_half_said_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EffectSettings(**given)


@pytest.mark.parametrize(
    "given",
    [
        HOOK,
        {"webhook_url": "https://hooks.example:8443/a?b=c", "webhook_secret_parameter": "/hook"},
        {
            "webhook_url": "http://127.0.0.1:8080/in",
            "webhook_secret": "x" * 16,
            "webhook_loopback": True,
        },
        {"search_url": "http://[::1]:9200"},
        {"search_url": "https://search.example:443/prefix", "search_index": "products"},
    ],
)
def test_what_is_safe_is_taken(given: dict[str, Any]) -> None:
    assert EffectSettings(**given).model_dump(exclude_none=True).items() >= given.items()
