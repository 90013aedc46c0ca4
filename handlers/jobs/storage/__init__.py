"""The control table: its keys and items, and executing a transaction on it.

``control_table`` has every key and turns jobs and leases into items and back; ``job_update`` is the
write from a job to the job afterwards; ``transaction`` executes a transaction until its outcome is
known; ``outbox`` walks the rows that wait for recovery.
May import: ``words``.
"""
