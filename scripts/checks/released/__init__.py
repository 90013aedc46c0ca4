"""What the last release wrote and reads, and its worker's code, kept in ``tests/released``.

``python -m scripts.checks.released`` makes both files again: it takes the release's code out of
git, packs what a worker runs, and runs ``moments`` with it. Tests need these files alone, and no
history.
"""
