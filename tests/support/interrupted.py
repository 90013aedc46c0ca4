"""Commands that get Ctrl-C while they wait for something: a program that runs each in a fork.

``python -m tests.support.interrupted`` reads JSON, a list of commands' words, and prints JSON: what
each had come to, its exit status, and all that it printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from fairlane_client.cli import main
from fairlane_client.commands.app import app
from fairlane_client.commands.output import say

MOMENTS: Final = {
    "connecting": (socket.socket, "connect"),
    "starting a process": (subprocess.Popen, "__init__"),
    "waiting": (time, "sleep"),
}
"""What a command that takes long does, and where it gets the signal for it."""
SILENT: Final = ""
"""It came to none of them."""


def tree() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command without its group, by its words."""
    yield from _leaves(get_command(app), ())


def _leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    loaded = getattr(command, "loaded", command)
    if not hasattr(loaded, "list_commands"):
        yield words, loaded
        return
    for name in loaded.list_commands(None):
        yield from _leaves(loaded.get_command(None, name), (*words, name))


def _interrupt_at_the_first(reached: Callable[[str], None]) -> None:
    """Only once: what cleans up afterwards may wait."""
    undone = {what: (place, name, getattr(place, name)) for what, (place, name) in MOMENTS.items()}

    def hooked(what: str) -> Callable[..., object]:
        def hook(*_: object, **__: object) -> object:
            for place, name, before in undone.values():
                setattr(place, name, before)
            reached(what)
            os.kill(os.getpid(), signal.SIGINT)
            while True:  # until the signal is there
                undone["waiting"][2](1)

        return hook

    for what, (place, name, _) in undone.items():
        setattr(place, name, hooked(what))


def _run(words: Sequence[str], out: int) -> int:
    """In a fork of its own, which prints into the file and ends with the command."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    _interrupt_at_the_first(lambda what: say(f"@{what}"))
    sys.argv = ["fairlane", *words]
    status = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  it is what the caller looks for
        traceback.print_exc()
        status = 1
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(status)


def _seen(words: Sequence[str]) -> tuple[str, int, str]:
    with tempfile.TemporaryFile() as out:
        status = _run(words, out.fileno())
        out.seek(0)
        said = out.read().decode()
    moments = [line.removeprefix("@") for line in said.splitlines() if line.startswith("@")]
    printed = "\n".join(line for line in said.splitlines() if not line.startswith("@"))
    return (moments or [SILENT])[0], status, printed


def interrupted(commands: Sequence[Sequence[str]], folder: Path) -> list[tuple[str, int, str]]:
    """For each command: what it had come to, its exit status, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps(commands),
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*filter(None, sys.path)]),
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(each) for each in json.loads(done.stdout)]


if __name__ == "__main__":
    dict(tree())  # imports all of them, once
    sys.stdout.write(json.dumps([_seen(words) for words in json.load(sys.stdin)]))
