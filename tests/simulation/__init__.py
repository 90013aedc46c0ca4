"""The real rules on the in-memory adapters, under every failure a seed can think of."""
