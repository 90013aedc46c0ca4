"""What a start that does not succeed leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.local.errors import LocalError
from scripts.local.stack import LocalStack


@pytest.mark.parametrize(
    ("error", "left"),
    [(LocalError("no port"), ["a.log"]), (KeyboardInterrupt(), None), (SystemExit(1), None)],
)
def test_a_failed_start_leaves_its_logs_and_an_interrupted_one_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, left: list[str] | None
) -> None:
    """Whether it was interrupted at its beginning or, as here, when all was ready."""

    def start(stack: LocalStack, _: object) -> None:
        stack._save(wanted=1, ready=True)
        (stack.folder.path / "a.log").write_text("said")
        raise error

    monkeypatch.setattr(LocalStack, "_start", start)
    stack = LocalStack("mine", root=tmp_path)
    with pytest.raises(type(error)):
        stack.up()
    folder = stack.folder.path
    assert (sorted(file.name for file in folder.iterdir()) if folder.exists() else None) == left
