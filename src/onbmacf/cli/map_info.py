"""A map as text: what it covers and how. The model is not in the file and is not needed."""

from pathlib import Path

import numpy as np

from onbmacf._disk.map_file import SavedMap, read_map
from onbmacf._text.wording import quoted, rounded, visible


def map_info(path: Path) -> str:
    """Return the description of a map, one fact per line."""
    fitted = read_map(path)
    cover, features = fitted.cover, fitted.space.schema.features
    facts = [
        ("file", f"{path} ({path.stat().st_size:,} bytes)"),
        ("rows", f"{len(fitted.Z):,}"),
        ("holds", held(fitted.options.get("private"))),
        ("balls", f"{len(cover):,}, {int(cover.is_degenerate.sum()):,} of them with radius 0"),
        (
            "radius",
            " / ".join(rounded(q) for q in np.quantile(cover.radii, [0, 0.5, 1])) + " (smallest, median, largest)",
        ),
        *((f"label {quoted(label)}", _of_label(fitted, code)) for code, label in enumerate(fitted.classes)),
        *((f"column {f.name}", f.shown_kind + (", immutable" if f.immutable else "")) for f in features),
        *((name, repr(value)) for name, value in fitted.options.items()),
        *(("warning", message) for message in fitted.warnings),
    ]
    width = min(28, max(len(visible(name)) for name, _ in facts))
    return "".join(f"{visible(name):<{width}}  {visible(text)}\n" for name, text in facts)


def held(private: int | None) -> str:
    """Return what a map gives away of the table that it was fitted on."""
    if private is None:
        return "the fitted table: every row can be read back exactly, with the model's label"
    return f"means and commonest levels of groups of at least {private} rows, and no row itself"


def _of_label(fitted: SavedMap, code: int) -> str:
    rows, balls = int((fitted.labels == code).sum()), int((fitted.cover.labels == code).sum())
    return f"{rows:,} rows in {balls:,} balls"
