"""What jobs do to the shop's products."""
