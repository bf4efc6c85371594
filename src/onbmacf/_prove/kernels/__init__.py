"""The loops of copies of models and of proofs, compiled when the package is built.

The loops of proofs are plain Python; the file of the same name that ends in .pxd gives their arrays, numbers and loops
C types. Methods of inner loops are final: they are then called directly, and the C compiler may inline them. Two calls
of which one leaves something for the other are two statements: C does not say which side of a sum comes first.
"""
