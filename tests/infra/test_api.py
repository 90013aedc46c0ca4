"""The front door: every route asks who calls."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest

from handlers.settings import CallerSettings, SettingsError
from handlers.web.titles import TITLES
from infra.settings import DeploySettings
from tests.support.openapi import check_answer

from .synthesis import AUTH, PRINCIPALS, Synthesised, referred


def test_no_route_is_open(stack: Synthesised) -> None:
    methods = stack.of("ApiGateway::Method")
    authorizer = stack.find("ApiGateway::Authorizer", "Token")
    assert methods
    for id_, method in methods.items():
        assert method["AuthorizationType"] == "CUSTOM", id_
        assert referred(method["AuthorizerId"]) == authorizer


def test_the_verdict_is_about_the_token(stack: Synthesised) -> None:
    (authorizer,) = stack.of("ApiGateway::Authorizer").values()
    assert authorizer["Type"] == "TOKEN"
    assert authorizer["IdentitySource"] == "method.request.header.Authorization"
    assert authorizer["AuthorizerResultTtlInSeconds"] == 60


def test_it_is_an_api_a_web_acl_can_protect(stack: Synthesised) -> None:
    (api,) = stack.of("ApiGateway::RestApi").values()
    assert api["EndpointConfiguration"]["Types"] == ["REGIONAL"]


def test_calls_are_logged_and_bodies_are_not(stack: Synthesised) -> None:
    (stage,) = stack.of("ApiGateway::Stage").values()
    fields = json.loads(stage["AccessLogSetting"]["Format"])
    assert fields["tenant"] == "$context.authorizer.tenant"
    (settings,) = stage["MethodSettings"]
    assert settings["DataTraceEnabled"] is False
    assert settings["ThrottlingRateLimit"] == 500
    assert settings["ThrottlingBurstLimit"] == 1000


def test_the_gateways_own_errors_are_problems_too(stack: Synthesised) -> None:
    problems = {}
    for answer in stack.of("ApiGateway::GatewayResponse").values():
        header = answer["ResponseParameters"]["gatewayresponse.header.Content-Type"]
        assert header == "'application/problem+json'"
        retry = answer["ResponseParameters"].get("gatewayresponse.header.Retry-After")
        assert (retry is not None) == (answer["StatusCode"] == "429")
        body = answer["ResponseTemplates"]["application/json"]
        # The message comes with its own quotes.
        filled = body.replace("$context.error.messageString", '"Unauthorized"')
        problem = problems[answer["ResponseType"]] = json.loads(filled)
        assert str(problem["status"]) == answer["StatusCode"]
        assert problem["title"] == TITLES[HTTPStatus(problem["status"])]
        # Documented like the function's own.
        sent = {"content-type": "application/problem+json", "x-request-id": "set by the gateway"}
        check_answer("POST", "/v1/jobs", problem["status"], sent, problem)
    assert {"DEFAULT_4XX", "DEFAULT_5XX", "UNAUTHORIZED", "THROTTLED"} < set(problems)
    assert problems["UNAUTHORIZED"]["code"] == "unauthorized"
    assert problems["WAF_FILTERED"]["answered_by"] == "waf"
    assert "POST /v1/uploads" in problems["REQUEST_TOO_LARGE"]["detail"]


def answers_of(stack: Synthesised) -> dict[str, dict[str, str]]:
    """The headers of the gateway's own answers and their ``status``, by type."""
    prefix = "gatewayresponse.header."
    return {
        answer["ResponseType"]: {
            "status": answer["StatusCode"],
            **{
                name.removeprefix(prefix): value
                for name, value in answer["ResponseParameters"].items()
            },
        }
        for answer in stack.of("ApiGateway::GatewayResponse").values()
    }


def test_c89_a_401_of_the_gateway_says_how_to_call_and_each_answer_has_its_request_id(
    stack: Synthesised, signed: Synthesised
) -> None:
    answers = answers_of(stack)
    bearer = 'Bearer realm="fairlane"'
    assert answers["UNAUTHORIZED"]["WWW-Authenticate"] == f"'{bearer}'"
    assert answers["ACCESS_DENIED"]["WWW-Authenticate"] == f"'{bearer}, error=\"invalid_token\"'"
    refused = {kind for kind, answer in answers.items() if answer["status"] == "401"}
    assert refused == {"UNAUTHORIZED", "ACCESS_DENIED"}
    assert answers["THROTTLED"]["Retry-After"] == "'1'"
    for every in (answers, answers_of(signed)):
        # API Gateway's own id, whatever a client sends.
        assert {each["X-Request-Id"] for each in every.values()} == {"context.requestId"}


def test_c89_who_signs_is_not_asked_for_a_token(signed: Synthesised) -> None:
    answers = answers_of(signed)
    assert not any("WWW-Authenticate" in each for each in answers.values())
    assert answers["ACCESS_DENIED"]["status"] == "403"


def test_iam_is_the_alternative(signed: Synthesised) -> None:
    methods = signed.of("ApiGateway::Method")
    assert methods
    for id_, method in methods.items():
        assert method["AuthorizationType"] == "AWS_IAM", id_
        assert "AuthorizerId" not in method
    assert not signed.of("ApiGateway::Authorizer")


@pytest.mark.parametrize(
    "chosen",
    [
        {"auth": AUTH, "principals": PRINCIPALS},
        {},
        {"principals": {}},
        {"principals": {"arn:aws:iam::123456789012:root": "acme"}},
        {"principals": {"arn:aws:sts::123456789012:assumed-role/a/b": "acme"}},
        {"principals": {"*": "acme"}},
        {"principals": {next(iter(PRINCIPALS)): ""}},
        {"principals": {next(iter(PRINCIPALS)): "a\nb"}},
    ],
)
def test_callers_are_known_in_exactly_one_way(chosen: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        DeploySettings.read(chosen)


def test_the_function_is_told_how_callers_are_known(
    stack: Synthesised, signed: Synthesised
) -> None:
    for of, expected in (
        (stack, CallerSettings()),
        (signed, CallerSettings(caller_auth="iam", caller_principals=PRINCIPALS)),
    ):
        (variables,) = (
            function["Environment"]["Variables"]
            for function in of.of("Lambda::Function").values()
            if function["Handler"] == "handlers.api.handler"
        )
        env = {name: value for name, value in variables.items() if isinstance(value, str)}
        assert CallerSettings.from_env(env) == expected
