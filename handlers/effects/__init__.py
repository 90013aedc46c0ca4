"""What has to hear of changed records: one file for each kind of place outside."""
