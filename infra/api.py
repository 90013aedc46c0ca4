"""The front door: a regional REST API, a token authorizer on every route, one function.

REST, because a web ACL attaches to nothing else of API Gateway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from handlers.settings import AuthSettings

from .acknowledge import acknowledge, acknowledge_payload_objects, acknowledge_serverless
from .callers import admit_other_accounts, callers_of, demo_role
from .functions import Functions, log_group
from .gateway_answers import add_problem_answers
from .grants import (
    WRITE,
    allow,
    allow_job_store,
    allow_payloads,
    allow_rows,
    allow_seeing_what_is_missing,
    allow_sending,
)
from .lane import Lane
from .settings import DeploySettings
from .storage import Storage, removal_of

_LOG_FIELDS: Final = {
    "request_id": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "latency_ms": "$context.responseLatency",
    "response_bytes": "$context.responseLength",
    "tenant": "$context.authorizer.tenant",
    "caller": "$context.identity.userArn",
    "error": "$context.error.responseType",
    "waf": "$context.waf.status",
}


class Api(Construct):
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        functions: Functions,
        storage: Storage,
        lanes: tuple[Lane, Lane],
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id_)
        settings = functions.settings
        self.function: Final = functions.make(
            self,
            "api",
            description="Creates and shows jobs",
            environment={**environment, **callers_of(settings)},
            timeout=settings.api.timeout,
            memory=settings.api.memory,
            reserved_concurrency=settings.api.reserved_concurrency,
        )
        self._grant(storage, lanes)
        self.demo_role: iam.Role | None = None
        self.authorizer: Final = (
            None
            if settings.auth is None
            else Authorizer(self, "Authorizer", functions=functions, auth=settings.auth)
        )
        self.rest: Final = self._rest(settings)

    def _grant(self, storage: Storage, lanes: tuple[Lane, Lane]) -> None:
        allow_job_store(self.function, storage, "by_tenant", "held")
        allow_rows(self.function, storage)
        allow(
            self.function,
            ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"),
            storage.idempotency.table_arn,
        )
        # Deleting: a refused job leaves no id list behind. Putting is also what the forms allow
        # that it signs for uploads, and reading is for whoever looks before creating.
        allow_payloads(self.function, storage.payloads, "GetObject", "DeleteObject", *WRITE)
        allow_seeing_what_is_missing(self.function, storage.payloads)
        # To say how large the records are that a job would change.
        allow(self.function, ("dynamodb:BatchGetItem",), storage.records.table_arn)
        allow_sending(self.function, *lanes)
        # To show how deep the queues are.
        allow(self.function, ("sqs:GetQueueAttributes",), *(lane.queue.queue_arn for lane in lanes))
        acknowledge_payload_objects(self, storage.payloads)

    def _rest(self, settings: DeploySettings) -> apigateway.RestApi:
        rest = apigateway.RestApi(
            self,
            "Rest",
            rest_api_name=settings.stack_name,
            description="Fairlane jobs",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            cloud_watch_role=settings.api.cloudwatch_role,
            cloud_watch_role_removal_policy=(
                removal_of(settings) if settings.api.cloudwatch_role else None
            ),
            deploy_options=self._stage(settings),
            default_integration=apigateway.LambdaIntegration(self.function),
            default_method_options=self._asked(),
        )
        rest.root.add_proxy(any_method=True)
        add_problem_answers(rest, tokens=self.authorizer is not None)
        admit_other_accounts(rest, settings.principals)
        if settings.demo_tenant is not None:
            self.demo_role = demo_role(rest, settings)
        _acknowledge(rest, waf_is_off=settings.waf.mode == "off")
        return rest

    def _asked(self) -> apigateway.MethodOptions:
        """Who calls is asked on every method: a token, or a signature of IAM."""
        if self.authorizer is None:
            return apigateway.MethodOptions(authorization_type=apigateway.AuthorizationType.IAM)
        return apigateway.MethodOptions(
            authorization_type=apigateway.AuthorizationType.CUSTOM,
            authorizer=self.authorizer.authorizer,
        )

    def _stage(self, settings: DeploySettings) -> apigateway.StageOptions:
        return apigateway.StageOptions(
            stage_name="live",
            access_log_destination=apigateway.LogGroupLogDestination(
                log_group(self, "AccessLogs", settings)
            ),
            access_log_format=apigateway.AccessLogFormat.custom(json.dumps(_LOG_FIELDS)),
            logging_level=apigateway.MethodLoggingLevel.ERROR,
            # Never the bodies: they are the tenants'.
            data_trace_enabled=False,
            metrics_enabled=True,
            throttling_rate_limit=settings.api.throttle_rate,
            throttling_burst_limit=settings.api.throttle_burst,
        )


class Authorizer(Construct):
    """Has no rights at all: it reads a public key set and answers."""

    def __init__(
        self, scope: Construct, id_: str, *, functions: Functions, auth: AuthSettings
    ) -> None:
        super().__init__(scope, id_)
        settings = functions.settings
        self.function: Final[lambda_.Function] = functions.make(
            self,
            "authorizer",
            description="Verifies tokens and names their tenant",
            environment=auth.to_env(),
            timeout=10,
            memory=512,
            reserved_concurrency=settings.api.authorizer_concurrency,
            works=False,
        )
        self.authorizer: Final = apigateway.TokenAuthorizer(
            self,
            "Token",
            handler=self.function,
            results_cache_ttl=Duration.seconds(settings.api.authorizer_cache),
            # Anything else is refused without starting the function.
            validation_regex="^[Bb]earer [-_.A-Za-z0-9]+$",
        )


def _acknowledge(rest: apigateway.RestApi, *, waf_is_off: bool) -> None:
    acknowledge(
        rest,
        "APIG2",
        "The function checks every input against its own models and names the bad field; a "
        "second schema here would answer first, with less.",
    )
    if waf_is_off:
        acknowledge(
            rest,
            "APIG3",
            "This deployment asked for no web ACL (waf.mode is off); its account attaches one of "
            "its own to the stage, or does without.",
        )
    acknowledge_serverless(
        rest,
        "APIGWXrayEnabled",
        "A request is followed by its id, which the access log and the function's log have; see "
        "LambdaTracing of the functions.",
    )
    acknowledge(
        rest,
        "COG4",
        "Tokens come from whatever OpenID issuer the deployment names; the authorizer on every "
        "route verifies them.",
    )
    acknowledge(
        rest,
        "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
        "AmazonAPIGatewayPushToCloudWatchLogs]",
        "API Gateway's account-wide logging role: AWS names this policy for it.",
    )
