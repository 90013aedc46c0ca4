"""What Fairlane costs, as ratios of two things measured side by side in one run.

A ratio needs no particular machine, and no quiet one: both sides are measured in turns, and the
figure is the median of the pairs. ``fairlane bench`` prints each and exits with 1 when one is out
of its bound. To add one, write ``scripts/bench/<name>.py`` with a ``BENCH`` and add it to
``registry.BENCHES``; docs/bench.md says what each is.
"""
