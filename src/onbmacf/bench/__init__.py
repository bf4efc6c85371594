"""The paper's comparison: eight datasets, twelve methods, one network, eight metrics.

    Task + Network  ->  Method.fit, Method.explain  ->  metrics  ->  one tidy table  ->  tables and radar plots

It uses the rest of the package as any other user would. Importing it loads no heavy libraries.
"""
