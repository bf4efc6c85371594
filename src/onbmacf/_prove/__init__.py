"""Proofs about known kinds of models: that a counterfactual is the nearest, or that there is none."""
