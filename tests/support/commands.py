"""The commands of the client, called as a user types them."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from fairlane_client import JobView
from fairlane_client.commands.app import app
from tests.support.views import job_view


def view(**changes: object) -> JobView:
    return job_view(str(changes.pop("id", "j1")), **changes)


def invoke(*arguments: str, typed: str | None = None) -> Result:
    where = ("--url", "http://127.0.0.1:1/x", "--token", "t")
    return CliRunner().invoke(app, ["jobs", arguments[0], *where, *arguments[1:]], input=typed)


def words(result: Result) -> str:
    """What was said on standard error, without the frame around it and its line ends."""
    return " ".join(result.stderr.replace("│", " ").split())


JOB = "0" * 32
"""The id of a job, as typed."""
BASE = ("submit", "--operation", "adjust_number", "--subject", "products", "--json")
