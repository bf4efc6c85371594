"""The caller's columns: containers of rows, frames, kinds of columns, and what is measured but no number, as dates."""
