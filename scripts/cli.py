"""The commands that the backend adds to ``fairlane``: operators' first, then those of a checkout.

The entry point ``fairlane.commands`` names the table; nothing is imported for it.
"""

from __future__ import annotations

from typing import Final

from fairlane_client.commands.lazy import Command

from .commands.needs import CHECKOUT

OPERATORS: Final = (
    Command(
        "dlq", "scripts.commands.dlq:app", "Dead letters, joined with the state of their jobs."
    ),
    Command(
        "drift",
        "scripts.commands.drift:drift",
        "Compare the record table with the search index; the exit status is 1 when they differ.",
    ),
    Command(
        "effects",
        "scripts.commands.effects:app",
        "What must still happen outside because chunks committed.",
    ),
    Command(
        "events",
        "scripts.commands.events:app",
        "What the event bus and the addresses of requests must still hear of jobs.",
    ),
    Command(
        "payload-budget",
        "scripts.commands.payload_budget:payload_budget",
        "Build the largest request that is accepted, and measure it in every layer it passes.",
    ),
    Command("tenants", "scripts.commands.tenants:app", "What a tenant may have under way at once."),
)
DEVELOPERS: Final = (
    Command(
        "bench",
        "scripts.commands.bench:bench",
        "Measure what Fairlane costs, side by side; the exit status is 1 out of bounds.",
        CHECKOUT,
    ),
    Command(
        "demo",
        "scripts.commands.demo:demo",
        "Bulk jobs over 28,000 airports in every bulk slot; small jobs start at once.",
        CHECKOUT,
    ),
    Command(
        "local",
        "scripts.commands.local:app",
        "The local stack: a local AWS with the deployed app.",
        CHECKOUT,
    ),
    Command(
        "opensearch",
        "scripts.commands.opensearch:app",
        "A real OpenSearch node, for the checks of queries.",
        CHECKOUT,
    ),
    Command(
        "simulate",
        "scripts.commands.simulate:simulate",
        "Replay one seed of the simulation, step by step. Exit status 1 when a rule is broken.",
        CHECKOUT,
    ),
    Command(
        "soak",
        "scripts.commands.simulate:soak",
        "Simulate seeds that no test has tried. Exit status 1 when one of them breaks a rule.",
        CHECKOUT,
    ),
    Command(
        "token",
        "scripts.commands.token:token",
        "Print a token for a tenant, signed by the local stack's development issuer.",
        CHECKOUT,
    ),
    Command(
        "verify",
        "scripts.commands.verify:verify",
        "Show on a stack of its own that a claim holds, and that it would not without its reason.",
        CHECKOUT,
    ),
)
COMMANDS: Final = (*OPERATORS, *DEVELOPERS)
