"""One fit and one explain: the caller's rows -> factuals -> search -> answers -> reasons."""
