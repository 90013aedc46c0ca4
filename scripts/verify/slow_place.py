"""A place outside that takes its time to hear of a tenant's records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .outside import Receiver, serving

SECRET = "a secret of loopback only"  # noqa: S105  nothing is behind it


@dataclass
class SlowPlace(Receiver):
    """A webhook that answers after a while, which some tenants have of their own."""

    usual: float = 0
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The effects of a deployment that tells it."""
        return {
            "webhook_url": f"{self.url}/told",
            "webhook_secret": SECRET,
            "webhook_loopback": True,
        }

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        time.sleep(self.seconds.get(json.loads(body)["tenant"], self.usual))
        return super().answer(method, path, headers, body)

    @contextmanager
    def serving(self) -> Iterator[None]:
        with serving(self):
            yield
