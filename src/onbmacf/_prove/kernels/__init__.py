"""The loops of proofs: branch and bound over boxes of choices, compiled when the package is built.

Each module is plain Python; the file of the same name that ends in .pxd gives its arrays, numbers and loops C types.
"""
