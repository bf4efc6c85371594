"""A naive search in blocks: every set of blocks of every fitted row, one by one; shares no code with the package."""

from itertools import chain, combinations

import numpy as np


def best_by_brute_force(table, labels, model, row, groups, span, keeps=lambda point: True, target=None):
    """Return the fewest blocks that are enough, and the least distance with so many; None where nothing is."""
    own, best = model(row[np.newaxis])[0], None
    for donor, label in zip(table, labels, strict=True):
        if label == own or (target is not None and label != target):
            continue
        differ = [columns for columns in groups if any(donor[c] != row[c] for c in columns)]
        for some in chain.from_iterable(combinations(differ, size) for size in range(1, len(differ) + 1)):
            point = row.copy()
            for columns in some:
                point[columns] = donor[columns]
            said = model(point[np.newaxis])[0]
            if said != own and (target is None or said == target) and keeps(point):
                found = (len(some), round(float((abs(point - row) / span).sum()), 9))
                best = found if best is None else min(best, found)
    return best
