"""Every port in memory: for tests, the simulation, and nothing deployed.

Each call is one atomic step, so that a scheduler can decide what happens between any two.
"""
