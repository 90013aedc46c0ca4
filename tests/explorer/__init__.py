"""Every order of the port calls of a few processes, over the real rules, at small sizes."""
