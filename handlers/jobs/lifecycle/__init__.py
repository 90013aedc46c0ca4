"""What clients, operators and recovery do to a job, from its creation to its clean-up.

``submit``, ``control`` and ``retry_failed`` answer requests; ``finish``, ``admission``, ``cleanup``
and ``dispatch`` follow from an end; ``recovery`` makes up for crashes; ``undecodable`` and
``dead_letters`` deal with what cannot go on.
May import: everything but ``execution``.
"""
