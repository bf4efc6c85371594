"""One fit and one explain: request -> rows -> search -> answers -> reasons."""
