"""The loops of proofs: branch and bound over boxes of choices, compiled when the package is built.

Each module is plain Python; the file of the same name that ends in .pxd gives its arrays, numbers and loops C types.
Methods of inner loops are final: they are then called directly, and the C compiler may inline them. Two calls of which
one leaves something for the other are two statements: C does not say which side of a sum comes first.
"""
