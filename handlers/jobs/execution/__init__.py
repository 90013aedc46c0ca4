"""A worker's side: from a delivered message to the decision about it.

``delivery`` asks what the message finds, ``attempt`` runs the job with its ``heartbeat``,
``chunk_loop`` commits chunk after chunk, ``prefetch`` and ``planning`` prepare the next ones.
May import: every other package.
"""
