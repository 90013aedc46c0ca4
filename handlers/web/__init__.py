"""What the API says: jobs as JSON, problems, pages, idempotent creation."""
