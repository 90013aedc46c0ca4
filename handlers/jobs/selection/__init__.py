"""Which records a job is over: request, filter, upload, traversal, preview.

``request`` checks a body, ``resolve`` decides what it selects and in which lane, ``id_sources``
hands out the ids in order.
May import: ``transitions`` and below; not ``results`` or ``effects``.
"""
