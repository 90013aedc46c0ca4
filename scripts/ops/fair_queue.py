"""What SQS's fair-queue metrics say of a queue, in CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

MINUTE: Final = 60
NOISY_GROUPS: Final = "ApproximateNumberOfNoisyGroups"
SHOWN: Final = (
    NOISY_GROUPS,
    "ApproximateNumberOfMessagesVisible",
    "ApproximateNumberOfMessagesVisibleInQuietGroups",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesNotVisibleInQuietGroups",
    "ApproximateAgeOfOldestMessage",
    "ApproximateAgeOfOldestMessageInQuietGroups",
)


class CloudWatch(Protocol):
    """Of boto3's client, what is used here."""

    def get_paginator(self, operation_name: Literal["get_metric_data"]) -> Any: ...


def most(cloudwatch: CloudWatch, queue: str, start: datetime, end: datetime) -> Mapping[str, float]:
    """The highest value of each metric; those without any are left out."""
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=[
            {
                "Id": f"m{number}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": name,
                        "Dimensions": [{"Name": "QueueName", "Value": queue}],
                    },
                    "Period": MINUTE,
                    "Stat": "Maximum",
                },
            }
            for number, name in enumerate(SHOWN)
        ],
        # Whole minutes, and the one that the end is in.
        StartTime=start.replace(second=0, microsecond=0),
        EndTime=datetime.fromtimestamp(end.timestamp() // MINUTE * MINUTE + MINUTE, tz=UTC),
    )
    values: dict[str, float] = {}
    for page in pages:
        for found in page["MetricDataResults"]:
            if found["Values"]:
                name = SHOWN[int(found["Id"].removeprefix("m"))]
                values[name] = max(*found["Values"], values.get(name, 0.0))
    return {name: values[name] for name in SHOWN if name in values}
