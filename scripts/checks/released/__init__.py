"""What the last release wrote and reads, kept as JSON in ``tests/released``.

``python -m scripts.checks.released`` makes the file again: it takes the release's code out of git
and runs ``moments`` with it. Tests read the file alone, so they need no history.
"""
