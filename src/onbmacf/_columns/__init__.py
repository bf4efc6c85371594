"""The caller's columns: containers, frames, kinds, and values such as dates, which are measured but are no numbers."""
