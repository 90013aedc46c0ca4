"""The end of a function's cold start."""

from __future__ import annotations

import gc


def done() -> None:
    """Collect garbage from here on, and never look at what the start has made: it stays."""
    gc.freeze()
    gc.enable()
