"""A typed client of Fairlane's API: jobs in, jobs and problems out.

::

    client = Client("https://abc.execute-api.eu-west-1.amazonaws.com/live", token)
    job = client.submit(NewJob(operation="set_fields", subject="products", ids=["1"], params=...))
    job = client.wait(job.id, timeout=60)

A refusal of the API is an ``ApiProblem``, with a type of its own for each code; without an answer
it is ``Unreachable``. Every error is a ``ClientError``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .client import Client
    from .downloads import fetch
    from .models import (
        EffectsView,
        ItemPage,
        ItemView,
        JobPage,
        JobPreview,
        JobView,
        LaneView,
        OperationView,
        ReportView,
        WaitView,
    )
    from .problems import (
        ApiProblem,
        BadAddress,
        ClientError,
        FileTooLarge,
        InexactNumber,
        NotAllowed,
        NotDownloaded,
        StillRunning,
        Unreachable,
    )
    from .requests import NewJob, NewUpload
    from .transport import Signer
    from .words import EndReason, Lane, OnConflict, Outcome, State, Waiting

__version__ = "0.1.0"

_HOMES: Final = {
    "client": ("Client",),
    "downloads": ("fetch",),
    "models": (
        "EffectsView",
        "ItemPage",
        "ItemView",
        "JobPage",
        "JobPreview",
        "JobView",
        "LaneView",
        "OperationView",
        "ReportView",
        "WaitView",
    ),
    "problems": (
        "ApiProblem",
        "BadAddress",
        "ClientError",
        "FileTooLarge",
        "InexactNumber",
        "NotAllowed",
        "NotDownloaded",
        "StillRunning",
        "Unreachable",
    ),
    "requests": ("NewJob", "NewUpload"),
    "transport": ("Signer",),
    "words": ("EndReason", "Lane", "OnConflict", "Outcome", "State", "Waiting"),
}
"""Module -> its public names. They are imported when they are asked for: the command is there
before its libraries are, to end cleanly at Ctrl-C."""
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ApiProblem",
    "BadAddress",
    "Client",
    "ClientError",
    "EffectsView",
    "EndReason",
    "FileTooLarge",
    "InexactNumber",
    "ItemPage",
    "ItemView",
    "JobPage",
    "JobPreview",
    "JobView",
    "Lane",
    "LaneView",
    "NewJob",
    "NewUpload",
    "NotAllowed",
    "NotDownloaded",
    "OnConflict",
    "OperationView",
    "Outcome",
    "ReportView",
    "Signer",
    "State",
    "StillRunning",
    "Unreachable",
    "WaitView",
    "Waiting",
    "fetch",
]


if not TYPE_CHECKING:  # or every name would be one of this package

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{home}", __name__), name)
