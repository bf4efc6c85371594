"""Algorithm 3 and the refined strategy, over arrays: from encoded factuals to encoded counterfactuals."""
