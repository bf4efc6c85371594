"""The loops of proofs and of copies of models, compiled when the package is built."""
