"""What gets deployed: entrypoints at the top level, and the layers they stand on."""
