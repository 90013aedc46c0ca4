"""``fairlane bench --short`` runs every bench, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.bench.registry import BENCHES


def test_every_bench_runs_and_has_figures(tmp_path: Path) -> None:
    """It needs the benches' set (requirements/bench.txt), which `make check` installs."""
    file = tmp_path / "bench.json"
    fairlane = str(Path(sys.executable).with_name("fairlane"))
    command = [fairlane, "bench", "--short", "--to", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    assert list(found["benches"]) == [bench.name for bench in BENCHES]
    facts = found["benches"]["isolation"]["facts"]
    bulk = [value for what, value in facts.items() if what.startswith("bulk records/s")]
    assert len(bulk) == 3
    assert min(bulk) > 0, facts
    for name, result in found["benches"].items():
        assert result["figures"], name
        for figure in result["figures"]:
            assert figure["what"] in done.stdout
            assert 0 < figure["low"] <= figure["ratio"] <= figure["high"], figure
