"""``make explore``: searches each play further than the tests do.

ARGS: names of plays, ``--faults=2``, ``--switches=all`` (or a number) and ``--states=100000``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from .explore import Bounds, Search
from .plays import PLAYS


def main(arguments: Sequence[str]) -> int:
    options = dict(each[2:].split("=") for each in arguments if each.startswith("--"))
    switches = options.get("switches", "3")
    bounds = Bounds(
        faults=int(options.get("faults", "2")),
        switches=None if switches == "all" else int(switches),
        states=int(options.get("states", "50000")),
    )
    named = [each for each in arguments if not each.startswith("--")]
    wrong = False
    for name in named or PLAYS:
        began = time.monotonic()
        found = Search(PLAYS[name], bounds).run()
        say(f"{found}, {time.monotonic() - began:.0f} s")
        for line in [*found.wrong, *found.trace]:
            say(f"    {line}")
        wrong = wrong or bool(found.wrong)
    return 1 if wrong else 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
