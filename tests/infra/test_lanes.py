"""Queues, dead letters, and the mapping that feeds the small lane's workers."""

from __future__ import annotations

import json

import pytest

from .synthesis import Properties, Synthesised, referred

LANES = ("Small", "Bulk")


def queue_of(stack: Synthesised, lane: str) -> Properties:
    return stack.properties("SQS::Queue", f"{lane}Queue")


def dead_letters_of(stack: Synthesised, lane: str) -> Properties:
    return stack.properties("SQS::Queue", f"{lane}DeadLetters")


def mapping_of(stack: Synthesised) -> Properties:
    (mapping,) = stack.of("Lambda::EventSourceMapping").values()
    return mapping


def small_function(stack: Synthesised) -> Properties:
    served = mapping_of(stack)["FunctionName"]
    # Where some of it is warm, the mapping is of the alias of a version.
    for id_, alias in stack.of("Lambda::Alias").items():
        if id_ in json.dumps(served):
            served = alias["FunctionName"]
    return stack.of("Lambda::Function")[referred(served)]


# --- what must hold, as questions to a template -----------------------------------------------


def outlives(stack: Synthesised, lane: str) -> bool:
    dead = dead_letters_of(stack, lane)["MessageRetentionPeriod"]
    return bool(
        dead == 14 * 86_400 and dead > queue_of(stack, lane).get("MessageRetentionPeriod", 345_600)
    )


def dead_letters_are_seen(stack: Synthesised, lane: str) -> bool:
    queue = stack.find("SQS::Queue", f"{lane}DeadLetters")
    return any(
        alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
        and referred(alarm["Dimensions"][0]["Value"]) == queue
        and alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        and alarm["Threshold"] == 1
        and alarm["Period"] == 60
        and alarm["Statistic"] == "Maximum"
        and alarm["TreatMissingData"] == "notBreaching"
        for alarm in stack.of("CloudWatch::Alarm").values()
        if "MetricName" in alarm and alarm.get("Namespace") == "AWS/SQS"
    )


def pollers_fit(stack: Synthesised) -> bool:
    reserved = small_function(stack).get("ReservedConcurrentExecutions")
    maximum = mapping_of(stack).get("ScalingConfig", {}).get("MaximumConcurrency")
    return reserved is None or (maximum is not None and max(5, maximum) <= reserved)


def hidden_long_enough(stack: Synthesised) -> bool:
    window = mapping_of(stack).get("MaximumBatchingWindowInSeconds", 0)
    needed = 6 * small_function(stack)["Timeout"] + window
    return bool(queue_of(stack, "Small")["VisibilityTimeout"] >= needed)


def generous(stack: Synthesised, lane: str) -> bool:
    return bool(queue_of(stack, lane)["RedrivePolicy"]["maxReceiveCount"] >= 5)


def failures_are_read(stack: Synthesised) -> bool:
    return mapping_of(stack).get("FunctionResponseTypes") == ["ReportBatchItemFailures"]


# --- the tests --------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", LANES)
def test_c65_dead_letters_keep_longer_than_the_queue(
    stack: Synthesised, unsound: Synthesised, lane: str
) -> None:
    assert outlives(stack, lane)
    assert not outlives(unsound, lane)


@pytest.mark.parametrize("lane", LANES)
def test_c65_one_visible_dead_letter_raises_an_alarm(stack: Synthesised, lane: str) -> None:
    assert dead_letters_are_seen(stack, lane)
    # Moves by SQS itself are not among the messages sent: that alarm would never fire.
    alarm = f"{lane}DeadLettersAlarm"
    assert not dead_letters_are_seen(
        stack.spoiled("CloudWatch::Alarm", alarm, MetricName="NumberOfMessagesSent"), lane
    )
    assert not dead_letters_are_seen(stack.spoiled("CloudWatch::Alarm", alarm, Threshold=2), lane)


def test_c25_the_pollers_fit_into_the_reserved_concurrency(
    stack: Synthesised, unsound: Synthesised
) -> None:
    assert pollers_fit(stack)
    assert not pollers_fit(unsound)
    uncapped = stack.spoiled("Lambda::EventSourceMapping", "SmallQueue", ScalingConfig=None)
    assert not pollers_fit(uncapped)


def test_c25_a_message_stays_hidden_for_six_function_timeouts(
    stack: Synthesised, unsound: Synthesised
) -> None:
    assert hidden_long_enough(stack)
    assert not hidden_long_enough(unsound)


@pytest.mark.parametrize("lane", LANES)
def test_c25_throttled_receives_do_not_use_up_the_message(
    stack: Synthesised, unsound: Synthesised, lane: str
) -> None:
    assert generous(stack, lane)
    assert not generous(unsound, lane)


def test_c27_the_mapping_reads_which_messages_failed(stack: Synthesised) -> None:
    assert failures_are_read(stack)
    assert not failures_are_read(
        stack.spoiled("Lambda::EventSourceMapping", "SmallQueue", FunctionResponseTypes=None)
    )


def test_some_of_the_small_lane_is_warm_in_production_and_none_elsewhere(
    stack: Synthesised, dev: Synthesised
) -> None:
    (alias,) = stack.of("Lambda::Alias").values()
    assert alias["ProvisionedConcurrencyConfig"] == {"ProvisionedConcurrentExecutions": 2}
    (id_,) = stack.of("Lambda::Alias")
    assert id_ in json.dumps(mapping_of(stack)["FunctionName"])
    # AWS warms a published version, and the alias turns to it afterwards.
    assert referred(alias["FunctionVersion"]) in stack.of("Lambda::Version")
    assert not dev.of("Lambda::Alias")


def test_c106_no_function_can_starve_another(stack: Synthesised) -> None:
    reserved = {
        function["Handler"].split(".")[1]: function["ReservedConcurrentExecutions"]
        for function in stack.of("Lambda::Function").values()
    }
    assert reserved == {"api": 100, "authorizer": 50, "recovery": 2, "small_lane": 110}


def test_nothing_filters_the_messages_of_a_lane(stack: Synthesised) -> None:
    # A filter deletes what it does not match.
    assert "FilterCriteria" not in mapping_of(stack)


@pytest.mark.parametrize("lane", LANES)
def test_each_queue_gives_up_to_its_own_dead_letters_and_those_take_from_nowhere_else(
    stack: Synthesised, lane: str
) -> None:
    queue = queue_of(stack, lane)
    target = queue["RedrivePolicy"]["deadLetterTargetArn"]
    assert referred(target) == stack.find("SQS::Queue", f"{lane}DeadLetters")
    allowed = dead_letters_of(stack, lane)["RedriveAllowPolicy"]
    assert allowed["redrivePermission"] == "byQueue"
    (source,) = allowed["sourceQueueArns"]
    assert source["Fn::Join"][1][-1].endswith(f":{queue['QueueName']}")


def test_every_queue_is_standard_and_refuses_plain_http(stack: Synthesised) -> None:
    queues = stack.of("SQS::Queue")
    assert len(queues) == 4
    assert not [id_ for id_, queue in queues.items() if queue.get("FifoQueue")]
    refusing = {
        referred(policy["Queues"][0])
        for policy in stack.of("SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert refusing == set(queues)


def test_reservation_can_be_turned_off_and_the_cap_stays(other: Synthesised) -> None:
    assert "ReservedConcurrentExecutions" not in small_function(other)
    assert mapping_of(other)["ScalingConfig"]["MaximumConcurrency"] == 100
