"""The web ACL in front of the API.

AWS's managed rules refuse every body over 8 KiB and much free text that is harmless as data: a
URL with an IP address, a piece of HTML. Creating a job needs both, and no other route does. So
these body rules only label a request, and rules of our own refuse what is labelled, everywhere
but on that one route. There, a large body has to declare a length up to a limit of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_wafv2 as waf
from constructs import Construct

from handlers.jobs.words.limits import MAX_BODY_BYTES, WAF_BODY_BYTES, WAF_BODY_RULE
from handlers.web.titles import TITLES

from .functions import log_group
from .settings import DeploySettings
from .waf_statements import (
    Statement,
    all_of,
    any_of,
    creates_a_job,
    declares_at_most,
    labelled,
    none_of,
    per_address,
    per_header,
)

COMMON: Final = "AWSManagedRulesCommonRuleSet"
LABEL: Final = "awswaf:managed:aws:core-rule-set:"
SIZE_RULE: Final = ("SizeRestrictions_BODY", "SizeRestrictions_Body")
TEXT_RULES: Final = (
    ("CrossSiteScripting_BODY", "CrossSiteScripting_Body"),
    ("GenericRFI_BODY", "GenericRFI_Body"),
    ("GenericLFI_BODY", "GenericLFI_Body"),
    ("EC2MetaDataSSRF_BODY", "EC2MetaDataSSRF_Body"),
)
"""Rules about a body's text, each with the label it leaves."""
NO_USER_AGENT: Final = "NoUserAgent_HEADER"
"""Only counted: a program that calls an API need not say what it is."""

TOO_LARGE: Final = "too_large"
TOO_LARGE_HERE: Final = "too_large_here"
REFUSED: Final = "refused"
TOO_MANY: Final = "too_many_requests"
TOO_MANY_OF_ONE: Final = "too_many_of_one"

WINDOW: Final = 300
"""Seconds over which requests of one address are counted."""
_RETRY_AFTER: Final = [
    waf.CfnWebACL.CustomHTTPHeaderProperty(name="Retry-After", value=str(WINDOW))
]

_Rule = waf.CfnWebACL.RuleProperty


class Edge(Construct):
    """Web ACL, its logs of what was refused, and its place in front of the stage."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: DeploySettings, stage: apigateway.Stage
    ) -> None:
        super().__init__(scope, id_)
        self._settings: Final = settings.waf
        self._has_tokens: Final = settings.auth is not None
        self.metric_name: Final = f"{settings.stack_name}-Acl"
        self.acl: Final = waf.CfnWebACL(
            self,
            "Acl",
            scope="REGIONAL",
            description="Fairlane API",
            default_action=waf.CfnWebACL.DefaultActionProperty(allow={}),
            association_config=waf.CfnWebACL.AssociationConfigProperty(
                request_body={
                    "API_GATEWAY": waf.CfnWebACL.RequestBodyAssociatedResourceTypeConfigProperty(
                        default_size_inspection_limit=f"KB_{settings.waf.inspect_kb}"
                    )
                }
            ),
            custom_response_bodies=_answers(),
            rules=self._rules(),
            visibility_config=_visible(self.metric_name),
        )
        waf.CfnWebACLAssociation(
            self, "InFront", resource_arn=stage.stage_arn, web_acl_arn=self.acl.attr_arn
        )
        self._log(settings)

    def _rules(self) -> list[_Rule]:
        """In their order: what AWS manages labels requests before our rules look at the labels."""
        jobs = creates_a_job(self._settings.job_paths)
        size = labelled(LABEL + SIZE_RULE[1])
        text = any_of(*(labelled(LABEL + label) for _, label in TEXT_RULES))
        return [
            *self._rate(),
            self._managed("IpReputation", "AWSManagedRulesAmazonIpReputationList", 10),
            self._managed("KnownBadInputs", "AWSManagedRulesKnownBadInputsRuleSet", 20),
            self._managed(
                "Common",
                COMMON,
                30,
                counted=(SIZE_RULE[0], *(rule for rule, _ in TEXT_RULES), NO_USER_AGENT),
            ),
            self._refusing("LargeBodyElsewhere", 40, all_of(size, none_of(jobs)), TOO_LARGE_HERE),
            self._refusing("BadTextElsewhere", 41, all_of(text, none_of(jobs)), REFUSED),
            self._refusing(
                "LargeBodyOfJob",
                42,
                all_of(size, jobs, none_of(declares_at_most(WAF_BODY_BYTES))),
                TOO_LARGE,
            ),
        ]

    def _managed(self, name: str, group: str, priority: int, counted: Sequence[str] = ()) -> _Rule:
        watching = self._settings.mode == "count"
        override = waf.CfnWebACL.OverrideActionProperty
        return _Rule(
            name=name,
            priority=priority,
            override_action=override(count={}) if watching else override(none={}),
            statement=Statement(
                managed_rule_group_statement=waf.CfnWebACL.ManagedRuleGroupStatementProperty(
                    vendor_name="AWS",
                    name=group,
                    rule_action_overrides=[
                        waf.CfnWebACL.RuleActionOverrideProperty(
                            name=rule, action_to_use=waf.CfnWebACL.RuleActionProperty(count={})
                        )
                        for rule in counted
                    ]
                    or None,
                )
            ),
            visibility_config=_visible(name),
        )

    def _refusing(self, name: str, priority: int, statement: Statement, answer: str) -> _Rule:
        action = waf.CfnWebACL.RuleActionProperty(count={})
        if self._settings.mode == "block":
            response = waf.CfnWebACL.CustomResponseProperty(
                response_code=STATUS[answer].value,
                custom_response_body_key=answer,
                response_headers=_RETRY_AFTER if answer in SLOWED_DOWN else None,
            )
            action = waf.CfnWebACL.RuleActionProperty(
                block=waf.CfnWebACL.BlockActionProperty(custom_response=response)
            )
        return _Rule(
            name=name,
            priority=priority,
            action=action,
            statement=statement,
            visibility_config=_visible(name),
        )

    def _rate(self) -> list[_Rule]:
        rules = []
        if (limit := self._settings.rate_limit) is not None:
            statement = per_address(limit, WINDOW)
            rules.append(self._refusing("Rate", 0, statement, TOO_MANY))
        if self._has_tokens and (limit := self._settings.token_rate_limit) is not None:
            statement = per_header("authorization", limit, WINDOW)
            rules.append(self._refusing("TokenRate", 1, statement, TOO_MANY_OF_ONE))
        return rules

    def _log(self, settings: DeploySettings) -> None:
        # WAF accepts no other beginning of the name, so the group can't be left unnamed.
        name = f"aws-waf-logs-{settings.stack_name}"
        group = log_group(self, "Logs", settings, name=name)
        kept = ("BLOCK", "COUNT") if self._settings.mode == "count" else ("BLOCK",)
        conditions = [{"ActionCondition": {"Action": action}} for action in kept]
        logging = waf.CfnLoggingConfiguration(
            self,
            "Logging",
            resource_arn=self.acl.attr_arn,
            # The group's own ARN ends in ":*", which is not accepted here.
            log_destination_configs=[
                Stack.of(self).format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name=name,
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
            logging_filter={
                "DefaultBehavior": "DROP",
                "Filters": [
                    {
                        "Behavior": "KEEP",
                        "Requirement": "MEETS_ANY",
                        "Conditions": conditions,
                    }
                ],
            },
            redacted_fields=[
                waf.CfnLoggingConfiguration.FieldToMatchProperty(
                    single_header={"Name": "authorization"}
                )
            ],
        )
        logging.node.add_dependency(group)


# --- what it answers --------------------------------------------------------------------------

STATUS: Final = {
    TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    TOO_LARGE_HERE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    REFUSED: HTTPStatus.FORBIDDEN,
    TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    TOO_MANY_OF_ONE: HTTPStatus.TOO_MANY_REQUESTS,
}
SLOWED_DOWN: Final = (TOO_MANY, TOO_MANY_OF_ONE)
_CODE: Final = {TOO_LARGE_HERE: TOO_LARGE, TOO_MANY_OF_ONE: TOO_MANY}
"""Of the answers whose code is another's."""
_DETAIL: Final = {
    TOO_LARGE: f"the body has more than {MAX_BODY_BYTES} bytes, or no Content-Length; send more "
    "ids as a file, by POST /v1/uploads",
    TOO_LARGE_HERE: f"this route takes a body of at most {WAF_BODY_RULE} bytes",
    REFUSED: "the web firewall took the body of this request for an attack",
    TOO_MANY: "this address sent too many requests within five minutes",
    TOO_MANY_OF_ONE: "too many requests with this token within five minutes",
}


def _answers() -> dict[str, waf.CfnWebACL.CustomResponseBodyProperty]:
    """Problems like the API's own, so that nobody is refused without being told why."""
    return {
        key: waf.CfnWebACL.CustomResponseBodyProperty(
            content_type="APPLICATION_JSON", content=json.dumps(_problem(key, detail))
        )
        for key, detail in _DETAIL.items()
    }


def _problem(key: str, detail: str) -> dict[str, object]:
    status = STATUS[key]
    code = _CODE.get(key, key)
    return {
        "type": f"urn:fairlane:problem:{code}",
        "title": TITLES[status],
        "status": status.value,
        "code": code,
        "detail": detail,
        "answered_by": "waf",
    }


def _visible(name: str) -> waf.CfnWebACL.VisibilityConfigProperty:
    # No samples: they would show tenants' headers.
    return waf.CfnWebACL.VisibilityConfigProperty(
        cloud_watch_metrics_enabled=True, metric_name=name, sampled_requests_enabled=False
    )
