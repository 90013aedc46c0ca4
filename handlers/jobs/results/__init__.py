"""The results of single records: failed, skipped and refused ones, and reports of them.

``items`` pages through them, ``report`` writes them into a file.
May import: ``transitions`` and below; not ``selection`` or ``effects``.
"""
