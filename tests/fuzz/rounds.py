"""A round: cases that hypothesis draws from one seed, with damaged maps and odd files among them."""

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzz.cases import CASES
from fuzz.run import run_case, run_damaged_map, run_odd_files

ROUND = 50  # cases
SEEDS = st.integers(0, 2**32 - 1)
QUIET = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}
PARTS = (("case", CASES, run_case, 0.8), ("map", SEEDS, run_damaged_map, 0.1), ("files", SEEDS, run_odd_files, 0.1))


def rounds_of(number, counts, n=ROUND):
    """Run a round; `counts` learns what became of each case. The first that fails is raised, as it is."""
    for what, cases, run, share in PARTS:
        seed(number)(_checked(what, cases, run, max(1, int(n * share)), counts))()


def _checked(what, cases, run, n, counts):
    @settings(max_examples=n, **QUIET)
    @given(cases)
    def check(case):
        counts[f"{what} {run(case)}"] += 1

    return check
