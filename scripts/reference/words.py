"""Words for what has no docstring where it is declared. A test refuses words that nothing needs."""

from __future__ import annotations

from typing import Final

SETTINGS: Final = {
    "timing": "Seconds. Synthesis checks the relations between them.",
    "timing.small": "Seconds, for the jobs of the small lane.",
    "timing.bulk": "Seconds, for the jobs of the bulk lane.",
    "limits": "Counts and sizes. Those of [limits and retention](limits.md) cannot be set.",
    "auth": "The issuer of your callers' tokens. Set `auth` or `principals`, never both.",
    "small_lane": "The function that runs jobs over few records.",
    "bulk_lane": "The service that runs all other jobs.",
    "bulk_lane.repository": "A ready image in a private ECR repository, in place of `image_uri`.",
    "api": "The function and the gateway in front of it.",
    "waf": "The web ACL: [sizes](../sizes.md).",
    "vpc": "A network of your own: [how to use it](../how-to/own-vpc.md).",
    "records": "A table of your own: [how to use it](../how-to/own-table.md).",
    "effects": "The places outside that hear of changed records: [effects](../effects.md).",
    "query": "Where the records of a query are found: [selection](../selection.md).",
    "pace": "How bulk work gets out of the way of small jobs: [fairness](../fairness.md).",
    "stack_name": "The name of the stack, of its queues and metrics, and of each alarm.",
    "architecture": "The processor of the functions and of the bulk worker's image.",
    "python": "The version that the functions run on.",
    "log_level": "The least level of a log line that is written.",
    "log_retention_days": "How long CloudWatch keeps log lines.",
    "alarm_topic_arn": "The SNS topic that gets the alarms. The profile `prod` needs one.",
    "timing.takeover_grace": "How long after its lease expired a job keeps its subject: its own "
    "redelivery comes before another job.",
    "timing.clock_skew": "The largest difference between two machines' clocks.",
    "timing.longest_chunk": "The longest time that one chunk may take.",
    "timing.retry_base": "The first wait of a job after a dependency failed; it doubles.",
    "timing.retry_cap": "The longest such wait.",
    "timing.effect_retry_base": "The first wait of an effect after a sink failed; it doubles.",
    "timing.effect_retry_cap": "The longest such wait.",
    "timing.*.heartbeat": "The time between two renewals of a running job's lease.",
    "timing.*.lease_ttl": "How long a lease lasts after a heartbeat.",
    "timing.*.visibility": "How long a received message stays hidden.",
    "timing.*.max_attempts": "Attempts of a job before it fails.",
    "timing.*.max_receive_count": "Receives of a message before it becomes a dead letter.",
    "timing.*.queue_retention": "How long the queue keeps a message.",
    "timing.*.dlq_retention": "How long the queue of dead letters keeps one.",
    "limits.chunk_size": "Records that one transaction changes at most.",
    "limits.tenant_slots_small": "Messages one tenant may have in the small lane's queue; "
    "its other jobs are held in their order.",
    "limits.tenant_slots_bulk": "The same in the bulk lane's queue.",
    "auth.auth_issuer": "The claim `iss` that a token must have.",
    "auth.auth_audience": "The claim `aud` that a token must have.",
    "auth.auth_tenant_claim": "The claim that names the caller's tenant.",
    "small_lane.memory": "MiB of one function.",
    "bulk_lane.cpu": "CPU units of one task; 1,024 are one core.",
    "bulk_lane.max_tasks": "The most tasks that scaling starts.",
    "bulk_lane.image_uri": "A ready image that needs no credentials to pull, for deploying without "
    "Docker.",
    "bulk_lane.repository.tag": "The image's tag; set either `tag` or `digest`.",
    "bulk_lane.repository.digest": "The image's digest.",
    "api.memory": "MiB of one function.",
    "api.authorizer_concurrency": "Kept for the function that checks tokens, and its limit.",
    "api.throttle_burst": "Requests at once over all tenants.",
    "vpc.vpc_id": "The network.",
    "vpc.subnet_ids": "The subnets of workers and functions.",
    "vpc.security_group_ids": "The security groups of workers and functions.",
    "records.tenant_key": "The partition key of the record table.",
    "records.id_key": "The sort key of the record table.",
    "effects.webhook_url": "The address that gets a signed POST for each chunk.",
    "effects.webhook_secret_arn": "The ARN of a Secrets Manager secret whose whole value signs the "
    "requests. Set one of the three secrets.",
    "effects.webhook_secret_parameter": "The name of an SSM parameter with the secret.",
    "effects.webhook_secret": "The secret itself, for loopback only.",
}
METRICS: Final = {
    "DISPATCHES_OPEN": "Messages not sent yet, counted when recovery begins a run.",
    "EFFECTS_OPEN": "Effects not done yet, counted when recovery begins a run.",
    "EVENTS_OPEN": "Events no listener has taken yet, counted when recovery begins a run.",
    "REDELIVERIES_OF_ACTIVE": "Messages that came again while a worker was running their job.",
    "OWNERSHIP_LOST": "Attempts that ended because another holder had the subject.",
    "TAKEOVERS": "Jobs whose subject another job took after their worker had died.",
    "ATTEMPTS_EXHAUSTED": "Jobs that failed because their attempts were used up.",
    "UNREADABLE_MESSAGES": "Messages that Fairlane did not send or whose job does not exist.",
    "EFFECTS_DONE": "Effects that every sink has taken.",
    "EFFECTS_PARKED": "Effects that were tried too often and wait for a replay.",
}
ENDS: Final = {
    "attempts_exhausted": "Its attempts are used up: workers crashed or stopped answering.",
    "superseded": "Another job has the subject.",
    "taken_over": "Its worker died, and another job took the subject before the redelivery.",
    "undecodable": "This version cannot read the job's stored item.",
    "payload_gone": "The stored list of ids is gone.",
    "unknown_operation": "The deployment no longer has the operation.",
    "bad_parameters": "The operation no longer accepts the job's parameters.",
    "too_many_failed": "A larger share of its records failed than it tolerates.",
}
PROBLEMS: Final = {
    "bad_request": ("The request is malformed; `errors` names each wrong part.", "Correct it."),
    "unauthorized": ("The token is missing, expired or not from the issuer.", "Get a new token."),
    "insufficient_scope": ("The token lacks the scope in `scope`.", "Ask for a token with it."),
    "unknown_principal": (
        "The IAM role that signed stands for no tenant.",
        "Add it to the setting `principals`.",
    ),
    "not_found": ("No such route, or no such job of this tenant.", "Check the address."),
    "method_not_allowed": (
        "The route does not have this method; `Allow` names those it has.",
        "Send one of them.",
    ),
    "unsupported_media_type": (
        "The body is not `application/json`.",
        "Send JSON, with that `Content-Type`.",
    ),
    "subject_busy": (
        "Another job, or a worker of your own, has the subject: `active_job`.",
        "Wait for its end, or send `on_conflict=return_existing`.",
    ),
    "not_possible": ("The job's `state` does not allow it.", "Read the job again."),
    "too_many_jobs": (
        "The tenant has `limit` jobs that have not ended.",
        "Wait, or ask the operator for a higher limit.",
    ),
    "tenant_stopped": (
        "An operator has set a limit of the tenant to 0.",
        "Ask the operator; a repeated request is refused again.",
    ),
    "too_many_uploads": (
        "The tenant got `limit` upload addresses within their time.",
        "Wait for `Retry-After`, or upload fewer and larger files.",
    ),
    "in_progress": (
        "A request with the same Idempotency-Key is still being answered.",
        "Send it again after `Retry-After`.",
    ),
    "too_large": ("The body has too many bytes or ids.", "Upload a file: `POST /v1/uploads`."),
    "unprocessable": (
        "The parts of the request do not go together, or name something that does not exist.",
        "Correct the field.",
    ),
    "idempotency_key_reused": (
        "The Idempotency-Key was used for a different request.",
        "Use a new key.",
    ),
    "report_too_large": (
        "Writing the report takes longer than a request may.",
        "List the records: `GET /v1/jobs/{job_id}/items`.",
    ),
    "retry_too_large": (
        "Reading the failed records takes longer than a request may; nothing was created.",
        "List them and create a job over an upload.",
    ),
    "internal": ("Fairlane met an unexpected error.", "Report `request_id` to the operator."),
    "unavailable": (
        "A dependency did not answer; nothing was changed.",
        "Send it again after `Retry-After`.",
    ),
    "unsettled": (
        "A dependency's reply was lost: it may have taken effect.",
        "Send it again, with the same Idempotency-Key if it creates a job.",
    ),
    "forbidden": ("API Gateway refused the caller.", "Check the token or the signature."),
    "throttled": ("API Gateway's limit for all tenants is reached.", "Send it again later."),
    "too_many_requests": (
        "The web firewall's limit for one address is reached.",
        "Send fewer requests from this address.",
    ),
    "refused": (
        "The web firewall took the request for an attack.",
        "Send text as the values of a job only: [sizes](../sizes.md).",
    ),
    "gateway_timeout": (
        "The API took longer than 29 seconds; whether it took effect is unknown.",
        "Send it again, with the same Idempotency-Key if it creates a job.",
    ),
}
