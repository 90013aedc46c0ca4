"""A tenant that no request can come from is refused by the option that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.authorizer import BadToken, _tenant
from scripts.commands import token
from scripts.commands.tenant_option import tenant_text
from scripts.local.identity import Issuer
from scripts.local.target import Target

NO_TENANTS = ["", " ", "a\n", "\udcff", "é" * 129]
COMMANDS = [("token",), ("tenants", "show"), ("tenants", "set"), ("events", "key"), ("drift",)]


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A local stack, for tokens."""
    here = Target("http://127.0.0.1:1", Issuer(tmp_path))
    monkeypatch.setattr(token, "target", lambda _: here)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_tenant_that_cannot_be_is_refused_by_its_option(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--tenant", ""], env={"COLUMNS": "1000"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for '--tenant': must not be empty" in result.stderr


def test_a_token_for_any_other_is_printed() -> None:
    result = CliRunner().invoke(app, ["token", "--tenant", "café 7"])
    assert (result.exit_code, result.stdout.count(".")) == (0, 2)


@pytest.mark.parametrize("text", [*NO_TENANTS, "é" * 128, " a ", "europe"])
def test_the_option_refuses_what_the_authorizer_does(text: str) -> None:
    def accepted_by_option() -> bool:
        try:
            return tenant_text(text) == text
        except typer.BadParameter:
            return False

    def accepted_by_authorizer() -> bool:
        try:
            return _tenant(text) == text
        except BadToken:
            return False

    assert accepted_by_option() == accepted_by_authorizer() == (text not in NO_TENANTS)
