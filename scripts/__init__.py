"""What a person runs: the ``fairlane`` command, the local stack, the demo and the proofs."""
