"""Fuzz for long: `python -m fuzz 10000 --seed 0` in the folder tests. Prints the seed of every round and what failed.

    make fuzz                      10,000 cases
    make fuzz FUZZ="500 --seed 7"  others
    make fuzz FUZZ="3000 --certificates"  models with random parameters, and what is proven of them

A round of hypothesis is one seed: `python -m fuzz 1 --seed S` draws the round of seed S again.
"""

import argparse
import sys
import time
import traceback
from collections import Counter

from fuzz.estimators import check_case
from fuzz.rounds import ROUND, rounds_of


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="?", default=10_000, help="cases, in rounds of one seed each")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--certificates", action="store_true", help="so many models, and what is proven of them")
    asked = parser.parse_args()
    if asked.certificates:
        sys.exit(certificates(range(asked.seed, asked.seed + asked.n)))
    counts, failed, start = Counter(), [], time.perf_counter()
    n_rounds = -(-asked.n // ROUND)
    for seed in range(asked.seed, asked.seed + n_rounds):
        try:
            rounds_of(seed, counts)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                break
            failed.append(seed)
            traceback.print_exc(limit=-6)
        print(f"seed {seed}: {dict(counts)}, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{counts.total():,} cases, {len(failed)} rounds failed{': seeds ' if failed else ''}{failed or ''}")
    sys.exit(bool(failed))


def certificates(seeds):
    """Compare what is proven with every point of small grids; print counts per class of models, return how many erred.

    A model is one seed: `python -m fuzz 1 --certificates --seed S` draws it again.
    """
    counts, wrong = Counter(), []
    for seed in seeds:
        found = check_case(seed, counts)
        wrong += found
        print(*found, sep="\n", end="\n" if found else "", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    print(f"{len(seeds):,} models, {len(wrong)} wrong certificates")
    return len(wrong)


if __name__ == "__main__":
    main()
