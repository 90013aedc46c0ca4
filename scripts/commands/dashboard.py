"""``fairlane dashboard``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from fairlane_client.commands.errors import CommandError
from fairlane_client.commands.files import check_target
from scripts.local import DEFAULT_NAME
from scripts.local.state import StackFolder
from scripts.ops.deployment import deployment

PNG: Final = ".png"


def dashboard(
    *,
    preview: Annotated[
        Path, typer.Option("--preview", dir_okay=False, help="Write this PNG.", metavar="FILE.png")
    ],
    name: Annotated[str, typer.Option("--name", help="The local stack.")] = DEFAULT_NAME,
) -> None:
    """Draw the dashboard of a local stack with what its logs measured, as a picture.

    It is the body that CloudWatch would get. Metrics of AWS itself are missing: a local AWS has
    none.
    """
    if preview.suffix.lower() != PNG:
        raise typer.BadParameter(f"--preview {preview}: the picture is a {PNG} file")
    check_target("--preview", preview)
    try:
        from scripts.ops import preview as drawing  # noqa: PLC0415  it needs an extra
    except ModuleNotFoundError as error:
        raise CommandError(
            f"`fairlane dashboard` draws with {error.name}, which is not installed: install the "
            "extra `fairlane[preview]`"
        ) from error
    import boto3  # noqa: PLC0415  after the drawing, which may be missing

    here = deployment(None, name)
    title = here.outputs["Dashboard"]
    body = json.loads(
        boto3.client("cloudwatch").get_dashboard(DashboardName=title)["DashboardBody"]
    )
    samples = drawing.samples_in(StackFolder(name).path)
    try:
        drawing.draw(body, samples, title=title).savefig(preview)
    except OSError as error:
        raise CommandError(f"--preview {preview}: {error}") from error
    print(f"{preview}: {len(body['widgets'])} widgets, {len(samples)} samples")
