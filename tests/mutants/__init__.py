"""Mutants: the rules with one condition, comparison or guard changed, and the tests that notice."""
