"""The OpenAPI document, as it was generated and committed beside this module."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("openapi.json")


@cache
def packaged() -> str:
    return FILE.read_text(encoding="utf-8")
