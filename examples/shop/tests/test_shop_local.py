"""The whole shop on a local stack: what README.md shows, and who hears of it."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shop_webhook import SECRET, Notices, server

HERE = Path(__file__).parents[1]
TEA = {
    "all": [
        {"field": "category", "op": "eq", "value": "tea"},
        {"field": "price", "op": "lt", "value": 100},
    ]
}


def fairlane(*words: str) -> str:
    run = subprocess.run(
        ["fairlane", *words], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@contextmanager
def listening() -> Iterator[tuple[Notices, str]]:
    notices = Notices(SECRET)
    running = server(notices, port=0)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield notices, f"http://127.0.0.1:{running.server_port}/changed"
    finally:
        running.shutdown()
        running.server_close()


def campaign(*, percent: int) -> dict[str, Any]:
    what = ("--operation", "change_price", "--subject", "prices", "--query", json.dumps(TEA))
    how = ("--param", f"percent={percent}", "--param", 'campaign="spring"')
    said = fairlane("jobs", "submit", "--tenant", "shop", *what, *how, "--wait", "--json")
    ended: dict[str, Any] = json.loads(said.splitlines()[-1])
    return ended


def test_prices_change_in_the_table_the_index_and_the_webhook(tmp_path: Path) -> None:
    settings = json.loads((HERE / "settings.local.json").read_text(encoding="utf-8"))
    with listening() as (notices, address):
        settings["effects"]["webhook_url"] = address
        (tmp_path / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        chosen = ("--records", "products.jsonl", "--settings", str(tmp_path / "settings.json"))
        try:
            fairlane("local", "up", *chosen)
            first, second = campaign(percent=-10), campaign(percent=-10)
            fairlane("drift", "--tenant", "shop")  # status 0: table and index agree
            fairlane("local", "down", "--keep")
        finally:
            fairlane("local", "down")
    assert (first["state"], first["succeeded"]) == ("SUCCEEDED", 3)
    assert (second["state"], second["succeeded"], second["skipped"]) == ("SUCCEEDED", 0, 3)
    assert sorted(notices.products) == ["cup-blue", "cup-red", "teapot"]
    kept = (HERE / ".fairlane" / "local" / "default.records.jsonl").read_text(encoding="utf-8")
    prices = {each["id"]: each.get("price") for each in map(json.loads, kept.splitlines())}
    changed = {"cup-blue": 6.75, "cup-red": 6.75, "teapot": 22.49}
    assert prices == {**changed, "samovar": 349, "grinder": 39.9, "gift-card": None}
