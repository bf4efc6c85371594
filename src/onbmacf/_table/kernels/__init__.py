"""The loop of the values that may be returned, compiled when the package is built."""
