"""Compare the benchmark's NICE with the NICEx package, one counterfactual at a time.

    python benchmarks/nice_agreement.py --data-dir data --datasets saheart,irish

NICEx needs numpy < 2 and pandas < 2, so it runs in its own environment, which is created on first use. Both get the
same network (its weights are passed as arrays), the same rows and the same factuals.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

REQUIREMENTS = ["NICEx==0.2.3", "numpy<2", "pandas<2", "scikit-learn", "scipy"]
SAME = 1e-9  # largest difference that counts as equal, as a share of a feature's range


def main() -> None:
    """Print the agreement per dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--datasets", default="saheart,irish")
    parser.add_argument("--factuals", type=int, default=200)
    parser.add_argument("--environment", type=Path, default=Path(tempfile.gettempdir()) / "onbmacf-nicex")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)  # the part that runs with NICEx
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.answer)
        return
    python = make_environment(arguments.environment)
    for name in arguments.datasets.split(","):
        print(compare(name, arguments.data_dir, arguments.factuals, python), flush=True)


def make_environment(folder: Path) -> Path:
    """Return the interpreter of an environment with NICEx."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return python


def compare(name: str, data_dir: Path | None, most: int, python: Path) -> str:
    """Explain the same factuals with both and return how many answers are equal."""
    from onbmacf.bench.datasets import load_task
    from onbmacf.bench.methods.nice import NICE
    from onbmacf.bench.network import trained_network
    from onbmacf.bench.protocol import factual_rows

    task = load_task(name, data_dir)
    network = trained_network(task, seed=0)
    rows = factual_rows(task, network, most)
    ours = np.stack(NICE().fit(task, network, 0).explain(task.Z[rows]))
    widths = [block.stop - block.start for block in task.blocks]
    layers = [parameter.numpy() for parameter in network.module.parameters()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.npz"
        values = _one_column_each(task.Z, task.blocks)
        np.savez(path, values=values, y=task.y, rows=rows, widths=widths, levelled=task.has_levels, **_named(layers))
        subprocess.run([str(python), __file__, "--answer", str(path)], check=True, env={"PATH": ""})
        theirs = np.load(path.with_name("answer.npy"))
    equal = (np.abs(_one_column_each(ours, task.blocks) - theirs) <= SAME).all(axis=1)
    return f"{name}: {equal.sum()} of {len(equal)} counterfactuals equal ({equal.mean():.1%})"


def answer(path: Path) -> None:
    """Explain with NICEx; runs in its environment, where this package is not installed."""
    from nice import NICE

    question = np.load(path)
    layers = [question[f"layer{place}"] for place in range(sum(name.startswith("layer") for name in question))]
    categories = np.flatnonzero(question["levelled"]).tolist()
    explainer = NICE(
        predict_fn=lambda values: _probabilities(_spread(np.asarray(values, dtype=float), question["widths"]), layers),
        X_train=question["values"].copy(),
        cat_feat=categories,
        y_train=question["y"],
        optimization="sparsity",
        justified_cf=True,
        distance_metric="HEOM",
        num_normalization="minmax",
    )
    found = [explainer.explain(question["values"][[row]].copy())[0] for row in question["rows"]]
    np.save(path.with_name("answer.npy"), np.stack(found))


def _named(layers: list) -> dict:
    return {f"layer{place}": layer for place, layer in enumerate(layers)}


def _one_column_each(Z: np.ndarray, blocks: tuple) -> np.ndarray:
    """Return one column per feature: scaled numbers, and the position of the active level."""
    return np.column_stack([Z[:, b].argmax(axis=1) if b.stop - b.start > 1 else Z[:, b.start] for b in blocks]).astype(
        float
    )


def _spread(values: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the encoded columns of such rows: the inverse of `_one_column_each`."""
    columns = [
        values[:, [place]] if width == 1 else np.eye(width)[values[:, place].astype(int)]
        for place, width in enumerate(widths)
    ]
    return np.hstack(columns)


def _probabilities(Z: np.ndarray, layers: list) -> np.ndarray:
    for place in range(0, len(layers), 2):
        Z = Z @ layers[place].T + layers[place + 1]
        if place + 2 < len(layers):
            Z = np.maximum(Z, 0.0)
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    main()
