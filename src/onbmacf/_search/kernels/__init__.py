"""The loops of the search, compiled when the package is built."""
