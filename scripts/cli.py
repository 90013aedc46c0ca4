"""The ``fairlane`` command."""

from __future__ import annotations

import signal
import sys

import typer
from rich.console import Console
from rich.text import Text

from .commands import (
    bench,
    demo,
    dlq,
    drift,
    effects,
    events,
    jobs,
    lanes,
    local,
    opensearch,
    payload_budget,
    simulate,
    tenants,
    token,
    verify,
)
from .local.errors import LocalError

app = typer.Typer(
    help="Bulk jobs with lanes: run them on one machine, watch them, and check what is claimed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(jobs.app, name="jobs")
app.add_typer(dlq.app, name="dlq")
app.add_typer(effects.app, name="effects")
app.add_typer(events.app, name="events")
app.add_typer(local.app, name="local")
app.add_typer(opensearch.app, name="opensearch")
app.add_typer(tenants.app, name="tenants")
app.command("bench")(bench.bench)
app.command("demo")(demo.demo)
app.command("drift")(drift.drift)
app.command("lanes")(lanes.lanes)
app.command("payload-budget")(payload_budget.payload_budget)
app.command("simulate")(simulate.simulate)
app.command("soak")(simulate.soak)
app.command("token")(token.token)
app.command("verify")(verify.verify)


def main() -> None:
    """Entry point. An expected error is one message and exit status 1; a bug is a traceback.

    Being ended (a closed terminal, a cancelled CI job) runs the same clean-up as Ctrl-C.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda ended, _: sys.exit(128 + ended))
    try:
        app()
    except LocalError as error:
        message = Text.assemble(("error: ", "red"), str(error))
        Console(stderr=True).print(message, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
