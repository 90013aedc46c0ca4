"""A known load on a local stack, and what can be said of it afterwards.

``plan`` decides the jobs, ``drive`` submits them, ``ledger`` reads what became of them from the
tables themselves, ``measures`` and ``truth`` judge it. The demo and the scenarios share it.
"""
