"""What the largest allowed request takes in each layer, measured on what the layers are given."""
