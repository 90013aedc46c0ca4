"""``--tenant``, where it names a tenant that requests come from."""

from __future__ import annotations

import typer

from handlers.jobs.words.limits import MAX_TENANT_BYTES
from handlers.jobs.words.text_rules import text_problem


def tenant_text(text: str) -> str:
    """Of the option, as its callback. Raises BadParameter for what the authorizer accepts from no
    token."""
    if problem := text_problem(text.strip() and text, MAX_TENANT_BYTES):
        raise typer.BadParameter(problem)
    return text
