"""Scenarios that show on a running stack what is claimed of Fairlane, each beside a control.

A scenario has a name, a ``run`` and a ``control``. The run shows what Fairlane does; the control
takes away the one thing the claim rests on, and has to show the harm: a scenario whose control
looks fine proves nothing, so it fails. Both yield expectations, and the command prints what was
expected and what was seen and exits with 1 on any difference.

To add one:

1. Write ``scripts/verify/<name>.py``::

       def run(bench: Bench) -> Iterator[Expectation]:
           with bench.stack("name") as stack:  # its own local AWS, taken down at the end
               seen = ...
               yield Expectation.of("what is claimed", expected="none", saw=seen, ok=seen == 0)

       def control(bench: Bench) -> Iterator[Expectation]:
           with bench.stack("name-control", settings={...}) as stack:
               yield Expectation.of("the harm without it", expected="at least 1", saw=..., ok=...)

       SCENARIO = Scenario("some-name", "One line on what it shows.", run, control)

2. Add ``SCENARIO`` to ``registry.SCENARIOS``.

``ok`` is computed from what was seen in the tables, queues, logs and answers; never from what the
scenario itself did. ``scripts.load`` has a load of jobs to put on a stack, and a ``Ledger`` that
reads it. Scenarios may look at the clock. Tests may not, so keep what can be judged without one
(and pure judgement of rows) in functions a test can call.
"""
