"""``fairlane index create|check``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from botocore.exceptions import BotoCoreError
from opensearchpy.exceptions import OpenSearchException

from handlers.aws.search_mapping import WrongIndex, create_index, mapping_problem
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import deployment
from scripts.ops.operator_log import noted
from scripts.ops.search import client_of, schema_of

from .comparing import DIFFERENT, comparing
from .outbox import Name, Stack

app = typer.Typer(
    help="Make and check the search index of a deployment.",
    no_args_is_help=True,
)

REFILL: Final = "fill it with `fairlane drift --tenant T --repair`, once for each tenant"


@app.command("create")
def create_(*, stack: Stack = None, name: Name = DEFAULT_NAME) -> None:
    """Make the index, behind an alias of the name in the settings, where there is none."""
    here = deployment(stack, name)
    settings = here.settings
    index = settings.effects.search_index
    with _asking(), noted(here, "index create"):
        made = create_index(
            client_of(settings), index, schema_of(settings), settings.effects.search_fields
        )
    print(f"made {index}; {REFILL}" if made else f"{index} is there, and its mapping is right")


@app.command()
@comparing()
def check(*, stack: Stack = None, name: Name = DEFAULT_NAME) -> None:
    """Say whether records can be written to the index. Exit status 1: they cannot; 2: trouble."""
    settings = deployment(stack, name).settings
    index = settings.effects.search_index
    with _asking():
        problem = mapping_problem(
            client_of(settings), index, schema_of(settings), settings.effects.search_fields
        )
    print(problem or f"{index} is there, and its mapping is right")
    raise typer.Exit(DIFFERENT if problem else 0)


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except WrongIndex as error:
        raise LocalError(str(error)) from error
    except (OpenSearchException, BotoCoreError) as error:
        raise LocalError(f"the search index cannot be asked: {error}") from error
