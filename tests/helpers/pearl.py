"""Abduction, action, prediction as Pearl writes them down, row by row: the naive twin of `_table/effects.py`.

A graph maps each effect to (causes, function of a dict of their values, whether it is exact). It shares no code with
the package: values are found by recursion, not in an order, and residuals are kept in a dict.
"""


def what_would_be(row, actions, graph):
    """Return the row, a dict, as it would be had the columns of `actions` these values."""
    actions = {name: value for name, value in actions.items() if not graph.get(name, (0, 0, False))[2]}
    residuals = {  # abduction
        name: row[name] - function({cause: row[cause] for cause in causes})
        for name, (causes, function, is_exact) in graph.items()
        if not is_exact
    }

    def value(name):
        if name in actions and actions[name] != row[name]:  # action
            return actions[name]
        if name not in graph:
            return row[name]
        causes, function, is_exact = graph[name]
        given = {cause: value(cause) for cause in causes}
        if all(given[cause] == row[cause] for cause in causes):
            return row[name]
        return function(given) + (0 if is_exact else residuals[name])  # prediction

    return {name: value(name) for name in row}
