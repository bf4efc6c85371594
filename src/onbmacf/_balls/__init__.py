"""Algorithms 1 and 2 over arrays: distances, geometry, neighbours, the cover, and compiled kernels."""
