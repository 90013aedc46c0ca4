"""Every conditional write of the protocol, each with the race it closes.

A transition is a value (``storage.transaction.Transaction``): building one does nothing.
``enqueue`` and ``takeover`` give a job its subject, ``attempt`` and ``chunk_commit`` are the
worker's, ``finish``, ``pause`` and ``release`` take the job from its worker, ``quotas`` counts per
tenant.
May import: ``events``, ``storage``, ``words``.
"""
