"""The events of a job's life, for the deployment and for the job's tenant.

``rows`` writes an event into the transaction that makes it true and publishes it at once where
that is possible; ``delivery`` is recovery's: it delivers the others, retries and parks.
May import: ``storage``, ``words``.
"""
