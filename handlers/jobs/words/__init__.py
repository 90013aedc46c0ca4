"""The nouns of Fairlane: jobs, operations, states, errors, ports, and every number.

Values and their checks; nothing here does anything. ``job`` and ``operation`` are the model,
``writes`` the vocabulary of conditional writes, ``ports`` what the rules need from outside,
``limits`` and ``timing`` the numbers.
May import: nothing of Fairlane's.
"""
