"""The commands that the backend adds to ``fairlane``: operators' first, then those of a checkout.

The entry point ``fairlane.commands`` names the table; nothing is imported for it.
"""

from __future__ import annotations

from typing import Final

from fairlane_client.commands.lazy import Command

from .commands.needs import CHECKOUT, LOCAL

OPERATORS: Final = (
    Command(
        "audit",
        "scripts.commands.audit:audit",
        "Show who ran which command that changes the deployment.",
    ),
    Command(
        "aws-check",
        "scripts.commands.aws_check:aws_check",
        "Run harmless jobs on a stack and say what held. Exit status 1: something did not; "
        "2: trouble.",
    ),
    Command(
        "cost",
        "scripts.commands.cost:cost",
        "Estimate what the deployment of cdk.json costs in a month: idle, and with so many jobs.",
    ),
    Command(
        "dispatches",
        "scripts.commands.dispatches:app",
        "List and replay dispatches: messages of jobs that are not in their queue yet.",
    ),
    Command(
        "dashboard",
        "scripts.commands.dashboard:dashboard",
        "Draw the dashboard of a local stack with what its logs measured, as a picture.",
    ),
    Command(
        "dlq",
        "scripts.commands.dlq:app",
        "List, redrive and set aside dead letters, each with the state of its job.",
    ),
    Command(
        "doctor",
        "scripts.commands.doctor:doctor",
        "Say what is wrong with a stack. Exit status 1: something is wrong; 2: trouble.",
    ),
    Command(
        "drift",
        "scripts.commands.drift:drift",
        "Compare the record table with the search index. Exit status 1: they differ; 2: trouble.",
    ),
    Command(
        "effects",
        "scripts.commands.effects:app",
        "List and replay effects: changes that sinks have not heard of yet.",
    ),
    Command(
        "events",
        "scripts.commands.events:app",
        "List and replay events of jobs that no listener has taken yet; show a tenant's key.",
    ),
    Command(
        "index",
        "scripts.commands.index:app",
        "Make and check the search index of a deployment.",
    ),
    Command(
        "operations",
        "scripts.commands.operations:app",
        "List, check and try operations: those of Fairlane and those in a folder of your own.",
    ),
    Command(
        "payload-budget",
        "scripts.commands.payload_budget:payload_budget",
        "Build the largest request that is accepted and measure it in every layer.",
    ),
    Command(
        "rates",
        "scripts.commands.rates:app",
        "Show and set how fast the bulk lane may change records.",
    ),
    Command(
        "tenants",
        "scripts.commands.tenants:app",
        "Show and set how many jobs a tenant may have at once.",
    ),
)
DEVELOPERS: Final = (
    Command(
        "bench",
        "scripts.commands.bench:bench",
        "Measure what Fairlane costs. Exit status 1: a figure is out of bounds; 2: trouble.",
        CHECKOUT,
    ),
    Command(
        "demo",
        "scripts.commands.demo:demo",
        "Show that small jobs start at once while bulk jobs fill every bulk slot.",
        CHECKOUT,
    ),
    Command(
        "local",
        "scripts.commands.local:app",
        "Start, update and stop local stacks: a local AWS with the deployed app.",
        LOCAL,
    ),
    Command(
        "opensearch",
        "scripts.commands.opensearch:app",
        "Start and stop a real OpenSearch node for the checks of queries.",
        CHECKOUT,
    ),
    Command(
        "simulate",
        "scripts.commands.simulate:simulate",
        "Replay a seed of the simulation step by step. Exit status 1: broken rules; 2: trouble.",
        CHECKOUT,
    ),
    Command(
        "soak",
        "scripts.commands.simulate:soak",
        "Simulate seeds that no test has tried. Exit status 1: one breaks a rule; 2: trouble.",
        CHECKOUT,
    ),
    Command(
        "token",
        "scripts.commands.token:token",
        "Print a token for a tenant, signed by the local stack's issuer.",
        LOCAL,
    ),
    Command(
        "verify",
        "scripts.commands.verify:verify",
        "Show that a claim holds, and that it fails without what it rests on.",
        CHECKOUT,
    ),
)
COMMANDS: Final = (*OPERATORS, *DEVELOPERS)
