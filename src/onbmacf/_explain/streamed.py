"""A map of a table that no process can hold: passes over the partitions of a Dask DataFrame (decision 0138).

    columns_pass  ->  rows with the ends and levels of every column, number of rows
    rows_pass     ->  a sample of the rows, by a hash of what is in them           ->  schema, form, scales
    labels_pass   ->  the model's labels, some rows of each
    cover         ->  reach of the sample among all rows (a minimum), balls, rows in no ball yet (a sum); again with a
                      sample of these, until enough rows are covered
    sampled rows, balls  ->  Streamed

What passes give is put together by minima, sums and lowest hashes: no partition, order or worker changes a bit of it.
"""

import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.cover import BallCover
from onbmacf._balls.geometry import Balls
from onbmacf._balls.groups import MOST_LEVELS, Groups
from onbmacf._balls.metrics import Metric
from onbmacf._balls.sampled import LEAST_OF_LABEL, cover_of_sample, enemies_among, first_balls
from onbmacf._base.arrays import Matrix, Rows, hashed, objects
from onbmacf._base.checks import listed
from onbmacf._columns.converters import converter_of
from onbmacf._explain.parts import Arrays, Kept, each_part
from onbmacf._table.form import TableForm
from onbmacf._table.model import BlackBox, is_error, told_apart
from onbmacf._table.replies import NaNAnswerError
from onbmacf._table.space import FeatureSpace
from onbmacf.errors import ModelError, TableError

SLACK = 1.25  # rows that are sent for each row of a sample: how many there are is known only on average
HASHES = float(2**64)
NOTHING: Any = None


class Told(NamedTuple):
    """What the driver knows of a partition: its labels, and as bits which of its rows lie in no ball yet."""

    codes: NDArray[np.int16]
    uncovered: NDArray[np.uint8]

    def lines(self) -> Rows:
        """Return the rows in no ball yet."""
        return np.flatnonzero(np.unpackbits(self.uncovered, count=len(self.codes)))


@dataclass(frozen=True, eq=False)
class Passes:
    """Where the passes run."""

    parts: list[Any]
    client: Any

    def over(self, work: Any, describe: str, given: Any = None, threads: int | None = None) -> Any:
        """Yield the number and the result of each partition."""
        given = [NOTHING] * len(self.parts) if given is None else given
        return each_part(work, self.parts, given, self.client, describe, threads)


# --- columns and rows -------------------------------------------------------------------------------------------------


def columns_pass(passes: Passes, dtypes: dict[Hashable, Any]) -> tuple[pd.DataFrame, int]:
    """Return rows in which every column has its ends, its levels and what is missing; and how many rows there are."""
    frames: list[pd.DataFrame] = []
    n_rows = 0
    for _, (frame, size) in passes.over(partial(_columns_of, dtypes), "columns"):
        n_rows += size
        frames = [witnesses(joined([*frames, frame]))]
    if n_rows < 2:
        raise TableError(f"the table has {n_rows} rows: a cover needs at least 2, of different labels.")
    return frames[0], n_rows


def _columns_of(dtypes: dict[Hashable, Any], piece: tuple[pd.DataFrame, Any]) -> tuple[pd.DataFrame, int]:
    """Return the witnesses of a partition, which must have the columns that Dask has promised."""
    frame = piece[0]
    if list(frame.columns) != list(dtypes):
        raise TableError(f"it has the columns {listed(frame.columns)} in place of {listed(dtypes)}.")
    for name, dtype in dtypes.items():
        if frame[name].dtype != dtype:
            raise TableError(f"column {name!r} has dtype {frame[name].dtype} in place of {dtype}. Cast it.")
    return witnesses(frame), len(frame)


def witnesses(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that show what is in the columns: the same ones whatever the order, and of witnesses themselves.

    Of equally good ones the row with the lowest hash.
    """
    frame = _by_hash(frame)
    kept: set[int] = set()
    for name in frame.columns:
        column = frame[name]
        lacks = column.isna().to_numpy()
        present = np.flatnonzero(~lacks)
        kept.update(np.flatnonzero(lacks)[:1].tolist())
        if not len(present):
            continue
        known = column.iloc[present]
        if (pd.api.types.is_numeric_dtype(column.dtype) and known.dtype != bool) or converter_of(known) is not None:
            kept.update((int(present[known.argmin()]), int(present[known.argmax()])))
            if pd.api.types.is_float_dtype(column.dtype):
                numbers = known.to_numpy(dtype=np.float64)
                kept.update(present[np.trunc(numbers) != numbers][:1].tolist())
            continue
        first = present[~known.duplicated().to_numpy()]
        if len(first) > MOST_LEVELS:
            raise TableError(
                f"column {name!r} has more than {MOST_LEVELS:,} levels: as an identifier or free text, leave it out."
            )
        kept.update(first.tolist())
    return frame.iloc[sorted(kept)]


def _by_hash(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[np.argsort(_raw_hashes(frame), kind="stable")].reset_index(drop=True)


def _raw_hashes(frame: pd.DataFrame) -> NDArray[np.uint64]:
    found: NDArray[np.uint64] = pd.util.hash_pandas_object(frame, index=False).to_numpy(dtype=np.uint64)
    return found


def joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Return rows of several partitions as one frame."""
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def rows_pass(passes: Passes, most: int, n_rows: int) -> pd.DataFrame:
    """Return the `most` rows with the lowest hashes, equal ones once."""
    share = SLACK * most / n_rows
    while True:
        limit = np.uint64(min(HASHES - 2**12, share * HASHES))
        found = [frame for _, frame in passes.over(partial(_rows_below, limit), "rows of the sample")]
        rows = _by_hash(joined(found))
        rows = rows[~pd.Series(_raw_hashes(rows)).duplicated().to_numpy()]
        if len(rows) >= most or share >= 1:
            return rows.iloc[:most]
        share *= 4  # many rows are copies of others


def _rows_below(limit: np.uint64, piece: tuple[pd.DataFrame, Any]) -> pd.DataFrame:
    hashes = pd.Series(_raw_hashes(piece[0]))
    frame: pd.DataFrame = piece[0][((hashes <= limit) & ~hashes.duplicated()).to_numpy()]
    return frame


# --- labels -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the rows of a partition become numbers and points."""

    form: TableForm
    space: FeatureSpace
    metric: Metric
    groups: Groups

    def numbers(self, frame: pd.DataFrame) -> Matrix:
        """Return rows as numbers; an error names the first that cannot be encoded."""
        frame = self.form.arrange(frame)[0]
        N = self.form.numbers(frame)
        faults = self.form.faults(frame, N)
        if faults:
            raise TableError(f"{len(faults):,} rows cannot be encoded; row {min(faults)}: {faults[min(faults)]}")
        return N

    def points(self, frame: pd.DataFrame) -> Matrix:
        """Return rows as points."""
        return self.space.encode_numbers(self.numbers(frame))


def labels_pass(passes: Passes, box: BlackBox, encoding: Encoding, kept: Kept) -> tuple[BlackBox, list[Told], Matrix]:
    """Label all rows; return the black box with its classes, the labels, and some rows of each label as numbers.

    In this process the model is asked by one thread: nobody promises that two may.
    """

    def make() -> Arrays:
        found: dict[int, tuple[list[Any], NDArray[np.int16]]] = {}
        rows: dict[Any, Matrix] = {}
        for number, (labels, codes, some) in passes.over(partial(_labelled, box, encoding), "labels", threads=1):
            found[number] = labels, codes
            for label, N in zip(labels, some, strict=True):
                both = np.concatenate([rows[label], N]) if label in rows else N
                rows[label] = _lowest(both, encoding.space, LEAST_OF_LABEL)
        classes = box.with_classes(objects(rows), sum(len(codes) for _, codes in found.values())).classes.tolist()
        places = {label: code for code, label in enumerate(classes)}
        arrays = {"rows": np.concatenate([rows[label] for label in classes]), "classes": _written(classes)}
        for number, (labels, codes) in found.items():
            arrays[f"codes {number}"] = np.array([places[label] for label in labels], dtype=np.int16)[codes]
        return arrays

    arrays = kept.arrays("labels", make)
    classes = objects(json.loads(str(arrays["classes"])))
    codes = [arrays[f"codes {number}"] for number in range(len(passes.parts))]
    told = [Told(own, np.packbits(np.ones(len(own), dtype=bool))) for own in codes]
    return replace(box, classes=classes), told, arrays["rows"]


def _written(classes: list[Any]) -> NDArray[Any]:
    """Return labels as one text."""
    try:
        return np.array(json.dumps(classes))
    except TypeError as error:
        raise ModelError(f"labels must be text, numbers or truth values, got {classes[0]!r}.") from error


def _labelled(
    box: BlackBox, encoding: Encoding, piece: tuple[pd.DataFrame, Any]
) -> tuple[list[Any], NDArray[np.int16], list[Matrix]]:
    """Return the labels of a partition's rows, which each has, and the rows of each label with the lowest hashes."""
    N = encoding.numbers(piece[0])
    labels = box.ask_labels(N)
    failed = np.flatnonzero(is_error(labels))
    if len(failed):
        row, error = int(failed[0]), labels[failed[0]]
        what = "returned NaN for" if isinstance(error, NaNAnswerError) else f"raised {type(error).__name__} on"
        raise ModelError(f"the model {what} row {row} ({len(failed):,} rows of the partition): {error}")
    codes, names = told_apart(labels)
    some = [_lowest(N[codes == at], encoding.space, LEAST_OF_LABEL) for at in range(len(names))]
    return names.tolist(), codes.astype(np.int16), some


def _lowest(N: Matrix, space: FeatureSpace, most: int) -> Matrix:
    """Return the rows with the lowest hashes, equal ones once."""
    return N[by_hash(space.encode_numbers(N), np.zeros(len(N), dtype=np.intp))[:most]]


def by_hash(Z: Matrix, codes: Rows) -> Rows:
    """Return the first of all equal points of one label, in the order of their hashes."""
    return np.unique(hashed(Z, codes), return_index=True)[1]


# --- the cover --------------------------------------------------------------------------------------------------------


class Streamed(NamedTuple):
    """The sampled rows and the balls that cover all."""

    N: Matrix
    codes: Rows
    cover: BallCover
    n_rows: int
    n_sampled: int  # rows of the first sample, which is drawn from all
    share: float  # of all rows that lie in a ball


def cover_passes(
    passes: Passes,
    encoding: Encoding,
    told: list[Told],
    sample: tuple[Matrix, Rows],
    how: tuple[str, int, float],
    kept: Kept,
) -> Streamed:
    """Cover a sample by balls without an enemy in any partition, then of the rows in none a sample, and so on."""
    competitors, most, coverage = how
    n_rows = sum(len(part.codes) for part in told)
    rounds: list[tuple[Matrix, Rows, BallCover]] = []
    while True:
        turn, (N, codes) = f"round {len(rounds) + 1}", sample
        Z = encoding.space.encode_numbers(N)
        reach = kept.arrays(f"{turn} radii", partial(_reach_pass, passes, encoding, told, Z, codes, turn))["reach"]
        cover = cover_of_sample(Z, codes, reach, encoding.metric, competitors, groups=encoding.groups)
        rounds.append((N, codes, cover))
        balls = Balls(Z[cover.centers], cover.radii, cover.labels)
        bits = kept.arrays(f"{turn} coverage", partial(_uncovered_pass, passes, encoding, told, balls, turn))
        told = [Told(part.codes, bits[str(number)]) for number, part in enumerate(told)]
        n_left = sum(len(part.lines()) for part in told)
        if n_left <= (1 - coverage) * n_rows:
            return _together(rounds, encoding, n_rows, 1 - n_left / n_rows)
        left = kept.arrays(f"{turn} rows", partial(_left_pass, passes, encoding, told, most, n_left, turn))
        sample = left["N"], left["codes"]


def _reach_pass(passes: Passes, encoding: Encoding, told: list[Told], Z: Matrix, codes: Rows, turn: str) -> Arrays:
    """Line 9 of the sample among all rows; among itself first, so that less is left to find."""
    reach = enemies_among(Z, codes, Z, codes, encoding.metric, groups=encoding.groups)
    work = partial(_reach_in, encoding, Z, codes, reach)
    for _, found in passes.over(work, f"{turn}: radii", [part.codes for part in told]):
        reach = np.minimum(reach, found)
    return {"reach": reach}


def _reach_in(encoding: Encoding, Z: Matrix, codes: Rows, known: Matrix, piece: tuple[pd.DataFrame, Any]) -> Matrix:
    frame, labels = piece
    rows = encoding.points(frame), labels.astype(np.intp)
    return enemies_among(Z, codes, *rows, encoding.metric, known, threads=1, groups=encoding.groups)


def _uncovered_pass(passes: Passes, encoding: Encoding, told: list[Told], balls: Balls, turn: str) -> Arrays:
    """Return, per partition, which rows these balls leave in none."""
    work = partial(_uncovered_in, encoding, balls)
    return {str(number): bits for number, bits in passes.over(work, f"{turn}: coverage", told)}


def _uncovered_in(encoding: Encoding, balls: Balls, piece: tuple[pd.DataFrame, Told]) -> NDArray[np.uint8]:
    frame, told = piece
    left = told.lines()
    codes, is_left = told.codes[left].astype(np.intp), np.zeros(len(told.codes), dtype=bool)
    owner = first_balls(balls, encoding.points(frame.iloc[left]), codes, encoding.metric, 1, encoding.groups)
    is_left[left] = owner < 0
    return np.packbits(is_left)


def _left_pass(passes: Passes, encoding: Encoding, told: list[Told], most: int, n_left: int, turn: str) -> Arrays:
    """Return a sample of the rows that lie in no ball yet."""
    share = SLACK * most / n_left
    while True:
        work = partial(_left_below, encoding, np.uint64(min(HASHES - 2**12, share * HASHES)))
        found = [rows for _, rows in passes.over(work, f"{turn}: rows in no ball", told)]
        N, codes = (np.concatenate(parts) for parts in zip(*found, strict=True))
        first = by_hash(encoding.space.encode_numbers(N), codes)
        if len(first) >= most or share >= 1:
            return {"N": N[first[:most]], "codes": codes[first[:most]]}
        share *= 4


def _left_below(encoding: Encoding, limit: np.uint64, piece: tuple[pd.DataFrame, Told]) -> tuple[Matrix, Rows]:
    frame, told = piece
    left = told.lines()
    N, codes = encoding.numbers(frame.iloc[left]), told.codes[left].astype(np.intp)
    is_low = hashed(encoding.space.encode_numbers(N), codes) <= limit
    return N[is_low], codes[is_low]


def _together(rounds: list[tuple[Matrix, Rows, BallCover]], encoding: Encoding, n_rows: int, share: float) -> Streamed:
    """Return the rows of all rounds and one cover of them."""
    N, codes = (np.concatenate([one[at] for one in rounds]) for at in (0, 1))
    starts = np.cumsum([0, *(len(one[0]) for one in rounds)])
    centers = np.concatenate([cover.centers + at for (*_, cover), at in zip(rounds, starts[:-1], strict=True)])
    reach = np.concatenate([cover.reach for *_, cover in rounds])
    Z, labels = encoding.space.encode_numbers(N), codes[centers]
    balls = Balls(Z[centers], reach[centers], labels)
    owner = first_balls(balls, Z, codes, encoding.metric, groups=encoding.groups)
    cover = BallCover(centers, reach[centers], labels, owner, reach)
    return Streamed(N, codes, cover, n_rows, len(rounds[0][0]), share)
