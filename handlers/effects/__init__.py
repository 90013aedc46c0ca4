"""The sinks and listeners: one file for each kind of place outside."""
