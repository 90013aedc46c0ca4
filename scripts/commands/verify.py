"""``fairlane verify NAME|--all``, and of a deployed stack ``fairlane verify waf --url URL`` and
``fairlane verify noisy-tenant --stack NAME --tokens FILE``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import boto3
import typer
from botocore.exceptions import BotoCoreError
from botocore.exceptions import ClientError as AwsError
from rich.console import Console

from fairlane_client import ClientError
from fairlane_client.commands.output import console
from scripts.local.errors import LocalError
from scripts.local.steps import Steps
from scripts.verify import noisy_on_aws, noisy_tenant, waf
from scripts.verify.framework import Bench, Expectation, Report, Scenario, perform
from scripts.verify.listing import listing
from scripts.verify.registry import SCENARIOS

from .comparing import comparing
from .needs import airports_of_checkout

NOTHING: Final = Expectation.of("expectations", expected="at least one", saw="none", ok=False)


@comparing()
def verify(
    name: Annotated[str | None, typer.Argument(help="The scenario to run.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run all scenarios.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    url: Annotated[
        str | None,
        typer.Option("--url", help="With waf: the deployed API's address, with its stage."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="FAIRLANE_TOKEN", help="With waf: a token of any tenant."),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option("--stack", help="With noisy-tenant: a CloudFormation stack on AWS."),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            help="With --stack: a file of tokens, one a line and each of another tenant. The "
            "first tenant makes the noise.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
) -> None:
    """Show that a claim holds, and that it fails without what it rests on.

    Each scenario starts a local stack of its own. "waf" is not a scenario: it sends requests to a
    deployed stack to see what its web firewall lets through, and creates nothing there. Exit status
    1: something differs from what was expected, in the run or in its control; 2: trouble.
    """
    if stack is not None or tokens is not None:
        reports = [_noisy_on_aws(name, stack, tokens)]
    elif name == waf.NAME and not every:
        reports = [_of_deployed(url, token)]
    elif url is not None:
        raise typer.BadParameter(
            f"--url goes with {waf.NAME} only; a scenario starts a stack of its own"
        )
    else:
        reports = _of_scenarios(_chosen(name, every=every, scenarios=SCENARIOS))
    ok = all(report.ok for report in reports)
    if as_json:
        print(json.dumps({"ok": ok, "scenarios": [report.as_json() for report in reports]}))
    else:
        show(reports, console())
    raise typer.Exit(0 if ok else 1)


def _of_scenarios(chosen: Sequence[Scenario]) -> list[Report]:
    airports_of_checkout("verify")
    with Steps() as steps, Bench(steps) as bench:
        return [_performed(scenario, bench) for scenario in chosen]


def _performed(scenario: Scenario, bench: Bench) -> Report:
    """Said at once: the last of them may be minutes away."""
    bench.steps.say(f"{scenario.name}: {scenario.shows}")
    report = perform(scenario, bench)
    bench.steps.say(f"{scenario.name}: {'as expected' if report.ok else 'NOT as expected'}")
    for part in report.parts:
        for each in part.expectations:
            if not each.ok:
                where = f"✗ {part.part}: {each.what}"
                bench.steps.say(f"{where}: {each.saw} — expected {each.expected}")
    return report


def _of_deployed(url: str | None, token: str | None) -> Report:
    if not url or not token:
        raise typer.BadParameter(
            f"{waf.NAME} needs a deployed stack: set --url, and --token or FAIRLANE_TOKEN"
        )
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter(f"--url {url} is not an http or https address")
    return waf.report(url, token)


def _noisy_on_aws(name: str | None, stack: str | None, tokens: Path | None) -> Report:
    if name != noisy_tenant.SCENARIO.name or stack is None or tokens is None:
        raise typer.BadParameter(
            f"--stack and --tokens go together, and only with {noisy_tenant.SCENARIO.name}"
        )
    said = noisy_on_aws.tokens_in(tokens.read_text(encoding="utf-8"))
    try:
        place = noisy_on_aws.target(boto3.client("cloudformation"), stack)
        return noisy_on_aws.report(place, said, boto3.client("cloudwatch"))
    except (BotoCoreError, AwsError, ClientError) as error:
        raise LocalError(f"the stack {stack!r} cannot be measured: {error}") from error


def _chosen(name: str | None, *, every: bool, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
    if every and name is None:
        return scenarios
    found = [scenario for scenario in scenarios if scenario.name == name]
    if every or not found:
        named = [*((each.name, each.shows) for each in scenarios), (waf.NAME, waf.SHOWS)]
        known = "\n".join(f"  {each:<20} {shows}" for each, shows in named)
        what = (
            "Name a scenario, or use --all"
            if name is None or every
            else f"There is no scenario {name!r}"
        )
        raise typer.BadParameter(f"{what}. There are:\n{known}")
    return found


def show(reports: Sequence[Report], console: Console) -> None:
    """Print what was expected and seen, scenario by scenario."""
    for report in reports:
        console.print()
        console.print(f"[bold]{report.scenario}[/]: {report.shows}", highlight=False)
        for part in report.parts:
            title = "The run" if part.part == "run" else "The control, which has to show the harm"
            console.print(f"[dim]{title} ({part.seconds:g} s)[/]", highlight=False)
            console.print(listing(part.expectations or [NOTHING], part.information))
    differences = sum(
        not each.ok for report in reports for part in report.parts for each in part.expectations
    )
    if differences:
        console.print(f"[red]{differences} of these are not as expected.[/]")
    else:
        console.print("[green]Everything is as expected.[/]")
