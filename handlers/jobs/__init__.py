"""The job rules: plain Python and pydantic. No AWS library, no clock, no environment.

The packages tell the story; each may import only from those below it:

``execution``   a delivered message, the attempt it begins, its heartbeat and its chunks
``lifecycle``   what clients and recovery do to a job: submit, cancel, retry, finish, admit, recover
``selection``   which records a job is over · ``results`` what became of them · ``effects`` what
                must happen outside the database because a chunk committed
``transitions`` every conditional write, each with the race it closes
``events``      the events of a job's life, and their delivery
``storage``     the control table's keys and items, executing a transaction, the outbox
``words``       the nouns: job, states, errors, ports, and every number (``limits``, ``timing``)

Half an hour's reading, in this order: ``words/job``, ``words/states``, ``words/writes``,
``storage/transaction``, ``transitions/enqueue`` and ``attempt``, ``lifecycle/submit``,
``execution/delivery``, ``attempt`` and ``chunk_loop``, ``lifecycle/finish``,
``transitions/takeover``.
"""
