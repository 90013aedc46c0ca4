"""What Fairlane costs, as ratios of two things measured side by side in one run.

A ratio needs no particular machine, and has a bound it must keep: ``fairlane bench`` prints each
and exits with 1 when one is out of bounds. To add one, write ``scripts/bench/<name>.py`` with a
``BENCH`` and add it to ``registry.BENCHES``.
"""
