"""Search engines for one machine: a real OpenSearch node, and the embedded double of it.

Both are context managers with a ``url`` and a ``client()``. The node shows what the embedded one
can't: an index that lags behind its writes. docs/opensearch.md tells when to use which.
"""
