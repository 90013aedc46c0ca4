"""Who may do what: scopes of tokens, principals of IAM, and nothing that a request carries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handlers import api
from handlers.jobs.words.limits import Limits
from handlers.settings import CallerSettings, SettingsError
from handlers.web.routes import ROUTES
from tests.handlers.deployment import TENANT, deployed, job, rest_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handlers.web.routes import Route
    from tests.handlers.deployment import Answer, Deployment

ROLE = "arn:aws:iam::123456789012:role/teams/deep/acme"
USER = "arn:aws:iam::123456789012:user/zoe"
PRINCIPALS = {ROLE: TENANT, USER: "other"}
UNKNOWN = f"{0:032x}"
IDS = [route.name for route in ROUTES]


def path_of(route: Route) -> str:
    return route.path.replace("{job_id}", UNKNOWN)


def other_scope(route: Route) -> str:
    return "jobs:read" if route.scope == "jobs:write" else "jobs:write"


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_every_route_needs_its_scope(stack: Deployment, route: Route) -> None:
    for scopes in (other_scope(route), "", "jobs:*", "jobs:readwrite jobs:write2", "JOBS:READ"):
        with stack.counted() as calls:
            answer = stack.call(route.method.upper(), path_of(route), job(["a"]), scopes=scopes)
        assert (answer.status, answer.body["code"]) == (403, "insufficient_scope")
        assert answer.body["scope"] == route.scope
        assert calls == []
    answer = stack.call(route.method.upper(), path_of(route), job(["a"]), scopes=route.scope.value)
    assert answer.status not in {401, 403}


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_without_a_verified_tenant_no_route_answers(stack: Deployment, route: Route) -> None:
    with stack.counted() as calls:
        answer = stack.call(route.method.upper(), path_of(route), job(["a"]), tenant=None)
    assert (answer.status, answer.body["code"], calls) == (401, "unauthorized", [])


def test_c89_the_functions_own_refusals_say_how_to_call(stack: Deployment) -> None:
    nobody = stack.call("GET", "/v1/jobs", tenant=None)
    assert nobody.headers["www-authenticate"] == 'Bearer realm="fairlane"'
    reader = stack.call("POST", "/v1/jobs", job(["a"]), scopes="jobs:read")
    assert reader.headers["www-authenticate"] == (
        'Bearer realm="fairlane", error="insufficient_scope", scope="jobs:write"'
    )


def test_scopes_can_be_switched_off(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_CALLER_ENFORCE_SCOPES", "False")
    api.callers.cache_clear()
    assert stack.call("POST", "/v1/jobs", job(["a"]), scopes="").status == 202
    assert stack.call("GET", "/v1/jobs", scopes="").status == 200
    api.callers.cache_clear()


# --- IAM --------------------------------------------------------------------------------------


@pytest.fixture
def signed(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """The deployment, asking for signatures."""
    settings = CallerSettings(caller_auth="iam", caller_principals=PRINCIPALS)
    for name, value in settings.to_env().items():
        monkeypatch.setenv(name, value)
    api.callers.cache_clear()
    yield stack
    api.callers.cache_clear()


def ask(stack: Deployment, arn: object, **event: Any) -> Answer:
    """GET /v1/jobs, signed by this principal."""
    context = rest_event("GET", "/v1/jobs", tenant=None)["requestContext"]
    context["identity"]["userArn"] = arn
    return stack.call("GET", "/v1/jobs", requestContext={**context, **event})


SESSION = "arn:aws:sts::123456789012:assumed-role/acme/session"


def test_a_role_stands_for_its_tenant_in_every_session(signed: Deployment) -> None:
    id_ = f"{5:032x}"
    for arn in (SESSION, SESSION + "-2", SESSION + "@x.example", ROLE):
        assert ask(signed, arn).status == 200, arn
    context = rest_event("POST", "/v1/jobs", tenant=None)["requestContext"]
    context["identity"]["userArn"] = SESSION
    made = signed.call("POST", "/v1/jobs", job(["a"]), requestContext=context)
    assert signed.job(made.body["id"]).tenant == TENANT
    assert [each["id"] for each in ask(signed, SESSION).body["jobs"]] == [made.body["id"]]
    assert ask(signed, USER).body == {"jobs": []}
    assert id_ != made.body["id"]


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sts::123456789012:assumed-role/acme2/session",
        "arn:aws:sts::123456789012:assumed-role/ACME/session",
        "arn:aws:sts::999999999999:assumed-role/acme/session",
        "arn:aws-cn:sts::123456789012:assumed-role/acme/session",
        "arn:aws:sts::123456789012:assumed-role/teams/deep/acme",
        "arn:aws:sts::123456789012:federated-user/acme",
        "arn:aws:iam::123456789012:user/acme",
        "arn:aws:iam::123456789012:role/other",
        "arn:aws:iam::123456789012:root",
        USER + "2",
        "acme",
        "*",
    ],
)
def test_other_principals_stand_for_nobody(signed: Deployment, arn: str) -> None:
    with signed.counted() as calls:
        answer = ask(signed, arn)
    assert (answer.status, answer.body["code"], calls) == (403, "unknown_principal", [])


@pytest.mark.parametrize("arn", [None, "", 7, ["x"]])
def test_an_unsigned_request_is_nobodys(signed: Deployment, arn: object) -> None:
    answer = ask(signed, arn)
    assert (answer.status, answer.body["code"]) == (401, "unauthorized")


def test_a_tokens_context_is_nothing_to_iam_and_a_signature_nothing_to_tokens(
    signed: Deployment,
) -> None:
    claims = {"tenant": TENANT, "scopes": "jobs:read jobs:write"}
    assert ask(signed, None, authorizer=claims).status == 401
    assert ask(signed, "arn:aws:iam::1:user/x", authorizer=claims).status == 403
    api.callers.cache_clear()
    with pytest.MonkeyPatch.context() as tokens:
        tokens.delenv("FAIRLANE_CALLER_AUTH")
        tokens.delenv("FAIRLANE_CALLER_PRINCIPALS")
        assert ask(signed, SESSION).status == 401
    api.callers.cache_clear()


@pytest.mark.parametrize(
    "env",
    [
        {"AUTH": "iam"},
        {"AUTH": "none"},
        {"PRINCIPALS": json.dumps(PRINCIPALS)},
        {"AUTH": "iam", "PRINCIPALS": "{}"},
        {"AUTH": "iam", "PRINCIPALS": "{"},
        {"AUTH": "iam", "PRINCIPALS": json.dumps({ROLE: ""})},
        {"AUTH": "iam", "PRINCIPALS": json.dumps({"arn:aws:iam::1:role/x": "a"})},
        {
            "AUTH": "iam",
            "PRINCIPALS": json.dumps(
                {f"arn:aws:iam::123456789012:role/r{n}": "a" for n in range(100)}
            ),
        },
    ],
)
def test_settings_that_let_in_nobody_or_anybody_are_refused(env: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        CallerSettings.from_env({f"FAIRLANE_CALLER_{name}": value for name, value in env.items()})


# --- what the document says of it -------------------------------------------------------------


def needed(document: Any) -> dict[str, Any]:
    """What each operation asks for, by its name."""
    return {
        operation["operationId"]: operation["security"]
        for path in document["paths"].values()
        for operation in path.values()
    }


def test_a_deployment_with_tokens_says_which_scope_each_route_needs(stack: Deployment) -> None:
    served = stack.call("GET", "/v1/openapi.json").body
    assert served["components"]["securitySchemes"].keys() == {"token"}
    assert needed(served) == {route.name: [{"token": [route.scope.value]}] for route in ROUTES}


def test_a_deployment_without_scopes_says_so(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_CALLER_ENFORCE_SCOPES", "False")
    api.callers.cache_clear()
    served = stack.call("GET", "/v1/openapi.json", scopes="").body
    assert needed(served) == {route.name: [{"token": []}] for route in ROUTES}
    api.callers.cache_clear()


def test_a_deployment_with_iam_asks_for_signatures_and_no_token(signed: Deployment) -> None:
    context = rest_event("GET", "/v1/openapi.json", tenant=None)["requestContext"]
    context["identity"]["userArn"] = SESSION
    served = signed.call("GET", "/v1/openapi.json", requestContext=context).body
    [(name, scheme)] = served["components"]["securitySchemes"].items()
    assert (name, scheme["x-amazon-apigateway-authtype"]) == ("iam", "awsSigv4")
    assert needed(served) == {route.name: [{"iam": []}] for route in ROUTES}


def test_the_ids_of_a_request_are_as_many_as_the_deployment_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with deployed(monkeypatch, limits=Limits(max_inline_ids=3)) as stack:
        served = stack.call("GET", "/v1/openapi.json").body
        most = served["components"]["schemas"]["JobRequest"]["properties"]["ids"]["maxItems"]
        ids = [f"r{n}" for n in range(most + 1)]
        assert stack.create(ids[:-1]).status == 202
        assert stack.create(ids, "another").status == 413
