"""The design of the comparison: which cells it has. Decided before the first run: docs/decisions/0136-comparison.md.

PARTS, tables, seeds  ->  cells        dataset  ->  group_of ("test" or "tuning")
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onbmacf.bench import keel
from onbmacf.bench.cases import MODELS, SEEDS
from onbmacf.bench.cells import Cell
from onbmacf.bench.datasets import DESCRIPTIONS
from onbmacf.bench.methods import HOLDING

TESTS, TUNING = keel.TABLES, tuple(DESCRIPTIONS)
HELD = "-HELD"
OWN = "ONB-MACF+"
CORE = ("NICE", "NICE-PROXIMITY", "NICE-NONE", "GS", "FACE-KNN", "ONB-MACF", OWN)
WITH_NETWORKS = ("DICE", *CORE)
FEW = ("NICE", "ONB-MACF", OWN)
# Seconds per row, or for networks alone. CFNOW-RANDOM is left out: it took five seconds per row.
SLOW = (
    *("CEM", "CEM-VAE", "CFNOW", "CLUE", "CRUDS", "DICE-GENETIC"),
    *("FACE-EPSILON", "NICE-PLAUSIBILITY", "WACHTER"),
)


@dataclass(frozen=True)
class Part:
    """Cells that differ in table, model, seed and method."""

    methods: Sequence[str]
    models: Sequence[str]
    tables: Sequence[str] = (*TESTS, *TUNING)
    n_seeds: int = SEEDS
    protocol: str = "unknown"
    n_noisy: int = 0


N_FACTUALS = 10  # per cell: of one method and one kind of model, 2,000 on the test tables
N_RETRAININGS = 5
PARTS = (
    Part(CORE, ["network"], n_noisy=N_FACTUALS),
    Part(["DICE"], ["network"]),
    Part(CORE, [model for model in MODELS if model != "network"]),
    Part(SLOW, ["network"], tables=TESTS, n_seeds=1),
    Part(FEW, ["network"], protocol="known"),
)


def cells() -> list[Cell]:
    """Return all cells; those that share a table and a model follow each other."""
    return [
        Cell(
            dataset,
            held(method, dataset),
            protocol=part.protocol,
            model=model,
            seed=seed,
            n_factuals=N_FACTUALS,
            n_retrainings=N_RETRAININGS,
            n_noisy=part.n_noisy,
        )
        for dataset in (*TESTS, *TUNING)
        for model in MODELS
        for seed in range(SEEDS)
        for part in PARTS
        if dataset in part.tables and model in part.models and seed < part.n_seeds
        for method in part.methods
    ]


def held(method: str, dataset: str) -> str:
    """Return the name of a method that holds immutables, where the table has some and the method can be told to."""
    return f"{method}{HELD}" if method in HOLDING and dataset in TUNING and DESCRIPTIONS[dataset].immutable else method


def group_of(dataset: str) -> str:
    """Return whether a table is one of those that conclusions are drawn from."""
    return "test" if dataset in TESTS else "tuning"
