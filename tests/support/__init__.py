"""What several suites share."""
