"""Synthesis of the app that is deployed to AWS, with the context of a local stack.

It takes the CDK seconds, so an assembly of Fairlane's own app is kept for as long as
nothing it depends on has changed (``assemblies``). What another app depends on cannot be listed, so
that one is synthesised each time. Addresses that differ from start to start are put in afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from itertools import dropwhile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from . import processes
from .assemblies import Assemblies, content_of
from .errors import LocalError
from .ministack import ACCOUNT, REGION
from .project import PROJECT, cdk_json_of, is_checkout
from .settings import Chosen

TIMEOUT_S: Final = 300
STOP_GRACE_S: Final = 2
LOG: Final = "synthesis.log"
NOTE: Final = "synthesis-read.json"
OBSERVED: Final = Path(__file__).with_name("observed.py")
TRACEBACK: Final = "Traceback (most recent call last):"
PLAIN: Final = ("OperationsError", "SettingsError", "ValueError")
"""Errors whose text is a sentence."""
INHERITED: Final = ("HOME", "TMPDIR", "LANG")
"""Of the caller's environment; nothing that could change what is synthesised."""


class Synthesis:
    """``with Synthesis(settings, out) as synthesis: ...`` synthesises in the background, or takes
    the assembly that was kept; ``assembly()`` waits for it. Leaving the block ends what still
    runs."""

    def __init__(
        self,
        settings: Chosen,
        out: Path,
        *,
        kept: Assemblies | None = None,
        project: Path = PROJECT,
    ) -> None:
        """out: the folder the assembly goes to; the log goes beside it. kept: those of Fairlane's
        own app. project: the folder of ``cdk.json``. Raises LocalError when that cannot be
        read."""
        cdk_json = cdk_json_of(project)
        self._project = project
        self._out = out
        self._kept = kept or (Assemblies() if is_checkout(project) else None)
        self._note = out.with_name(NOTE)
        """Where the app's run notes what it has read."""
        # As a text where nothing has to be looked up in it: the CDK drops a null of a mapping, and
        # then what the app chose would stay.
        chosen = settings if self._kept else json.dumps(settings)
        self._context = {
            **cdk_json.get("context", {}),
            "fairlane": chosen,
            # The functions import from the environment that runs the local AWS, so no wheels.
            "aws:cdk:bundling-stacks": [],
        }
        self._app: str = cdk_json.get("app", "python app.py")
        self._content = content_of(self._context, project) if self._kept else None
        self._process: processes.Process | None = None
        self.as_before = False
        """It was synthesised earlier."""

    def __enter__(self) -> Self:
        if self._kept and self._content:
            self.as_before = self._kept.take(self._content, self._out, self._project)
        if not self.as_before:
            log = self._out.with_name(LOG)
            log.unlink(missing_ok=True)
            self._process = processes.start(
                self._command(),
                cwd=self._project,
                env=_environment(self._context, self._out),
                log=log,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process:
            processes.stop([self._process], grace=STOP_GRACE_S)

    def assembly(self, addresses: Mapping[str, str] | None = None) -> Path:
        """The folder with the assembly. addresses: what goes in the place of what. Raises
        LocalError with what the app said, such as the two settings that contradict each other."""
        if self._process:
            if self._ended(self._process):
                said = last_error(self._process.tail(500))
                raise LocalError(
                    f"synthesis failed; correct what the app says and try again:\n{said}\n"
                    f"(all that it said: {self._process.log})"
                )
            self._keep()
        for template in self._out.glob("*.template.json"):
            template.write_text(_replaced(template.read_text(), addresses or {}))
        return self._out

    def _command(self) -> list[str]:
        if self._kept:
            return [sys.executable, str(OBSERVED), str(self._project / "app.py"), str(self._note)]
        # As the CDK's command runs it.
        return ["sh", "-c", self._app]

    def _keep(self) -> None:
        if self._kept is None or self._content is None:
            return
        # Unless somebody has changed a file meanwhile: who knows which one was read.
        if content_of(self._context, self._project) == self._content:
            read = json.loads(self._note.read_text())
            self._kept.keep(self._content, self._out, read)

    def _ended(self, process: processes.Process) -> int | None:
        try:
            return process.wait(TIMEOUT_S)
        except TimeoutError as error:
            raise LocalError(f"synthesis took more than {TIMEOUT_S} s: {process.tail()}") from error


def last_error(output: str) -> str:
    """What the last traceback of a Python program's output ends with: for people, where in the code
    it came from says nothing. The end of the output when there is no traceback."""
    lines = output.splitlines()
    begun = lines[::-1].index(TRACEBACK) if TRACEBACK in lines else 0
    of_traceback = lines[len(lines) - begun :]
    told = [*dropwhile(lambda line: line.startswith(" ") or not line, of_traceback)]
    if not told:
        return "\n".join(lines[-25:])
    kind, _, words = told[0].partition(": ")
    named = kind.rpartition(".")[2]
    first = words if named in PLAIN and words else f"{named}: {words}" if words else told[0]
    return "\n".join([first, *told[1:]])


def _replaced(text: str, addresses: Mapping[str, str]) -> str:
    for stand_in, address in addresses.items():
        text = text.replace(stand_in, address)
    return text


def _environment(context: Mapping[str, Any], out: Path) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        # CloudFormation's own rules are for templates that go to AWS; they are half of the time.
        "CDK_VALIDATION": "false",
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": REGION,
    }
