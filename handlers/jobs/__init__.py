"""The job rules: plain Python and pydantic. No AWS library, no clock, no environment.

The protocol, in the order to read it:

1. the words: ``model``, ``states``, ``store`` (conditional writes as values), ``ports``
2. every write with the race it closes: ``transactions``, ``placing``, ``leaving``; ``settle``
   carries them out until their outcome is known
3. a job's life: ``submit``, ``run`` (what a delivery finds), ``attempt``, ``chunks``, ``ending``
4. beside it: ``heartbeat``, ``control`` (cancel, pause, resume, retry), ``recover`` (``shards``)

Around it, each for itself: which records (``requests``, ``filters``, ``uploads``, ``preparing``,
``traversal``, ``sources``), what the outside hears (``effects``, ``effect_rows``, ``events``,
``telling``; ``undone`` for who asks), a tenant's limits (``tenants``), results of single records
(``results``, ``report``), dead letters (``redrive``), and the numbers: ``timing``, ``limits``,
``sizes``.
"""
