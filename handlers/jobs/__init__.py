"""The job rules: plain Python and pydantic. No AWS library, no clock, no environment.

Read in this order: ``model``, ``states``, ``store``, ``ports`` (the words), then ``submit``,
``run``, ``chunks``, ``transactions`` (one job's life), then ``control`` and ``recover``.
"""
