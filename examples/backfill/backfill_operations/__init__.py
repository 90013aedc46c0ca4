"""What the migration does to an invoice."""
