"""What must happen outside the database because a chunk committed.

``run`` hands the records as they are now to the sinks, ``rows`` writes the result of a run (done,
retried, parked, replayed), ``runner`` runs effects beside the chunk loop.
May import: ``transitions`` and below; not ``selection`` or ``results``.
"""
