"""The fitted map and other arrays in one checked file."""
