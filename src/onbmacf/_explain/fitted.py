"""A mapped table: what `fit` learns, as one frozen value, and what it notices but goes on with."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from onbmacf._balls.cover import BallCover, build_cover, check_cover_memory
from onbmacf._balls.distance import distances
from onbmacf._balls.geometry import Balls
from onbmacf._balls.groups import Groups
from onbmacf._balls.metrics import Metric, one_hot_height, proven_power, single_costs
from onbmacf._balls.neighbours import Neighbours, Scales
from onbmacf._balls.sampled import sample_of, sampled_cover
from onbmacf._base.arrays import Matrix, Rows, shared
from onbmacf._base.checks import listed
from onbmacf._columns.interop import is_dask_frame
from onbmacf._columns.kinds import are_dates, are_padded, look_like_dates
from onbmacf._prove.copies import Answering, Surrogate, steps_of
from onbmacf._search.options import OF_FIT, Options, rows_to_cover
from onbmacf._search.partition import Partition
from onbmacf._search.problem import Map
from onbmacf._search.strategies import STRATEGIES, checked
from onbmacf._search.table import SearchTable
from onbmacf._table.committee import Committee, member_boxes
from onbmacf._table.consistency import model_warnings
from onbmacf._table.constraints import Constraints
from onbmacf._table.effects import Effects
from onbmacf._table.embedding import Embedding
from onbmacf._table.form import TableForm
from onbmacf._table.gate import as_given
from onbmacf._table.model import BlackBox
from onbmacf._table.private import filled, moved
from onbmacf._table.readings import Reading
from onbmacf._table.scales import MOST_COLUMNS, present, weights_of
from onbmacf._table.space import FeatureSpace
from onbmacf._table.values import Reach
from onbmacf._text.wording import joined
from onbmacf.blocks import Blocks
from onbmacf.errors import ParameterError
from onbmacf.schema import Feature, Schema

N_PROBES = 64  # rows asked twice at fit, and again at load
TARGET_ROWS = 8  # with fewer rows, a column that matches the labels means little
NOTHING_SAID: Mapping[str, Any] = {}  # about the model's answers: arguments of `Reading.of`
COVERAGE = 0.999  # of the rows of a Dask DataFrame that are to lie in a ball
N_NEIGHBOURS = 5  # y of the field's yNN


# --- what fit notices -------------------------------------------------------------------------------------------------


def fit_warnings(form: TableForm, N: Matrix, cover: BallCover, black_box: BlackBox, labels: Rows) -> tuple[str, ...]:
    """Return what a caller should know of the table and the model just fitted."""
    messages = _dates_as_text(form.schema) + _held(form.schema)
    identifiers = [name for name in form.identifier_like(N) if name not in form.schema.held]
    if identifiers:
        columns = f"column{'s' * (len(identifiers) > 1)} {listed(identifiers)}"
        messages.append(f"every row has its own value in {columns}: an identifier explains nothing.")
    targets = _target_like(form, N, labels)
    if targets:
        messages.append(
            f"the values of column {listed(targets)} match the model's labels one to one: if it is the target, leave "
            "it out of the table."
        )
    conflicting = np.flatnonzero(cover.reach == 0)
    if len(conflicting):
        among = f" of the {np.count_nonzero(~np.isnan(cover.reach)):,} that were compared" if cover.is_sampled else ""
        messages.append(
            f"{len(conflicting)} rows{among} coincide with a row of another label, at positions "
            f"{listed(conflicting.tolist())}: their balls hold their own point only."
        )
    return (*messages, *model_warnings(black_box, N, labels, probe_rows(len(N))))


def _is_dates(feature: Feature) -> bool:
    return not feature.is_numeric and look_like_dates(feature.levels or ())


def _dates_as_text(schema: Schema) -> list[str]:
    """Return which columns of text hold dates, and what to type: as levels they have no order and no days between."""
    dates = [feature for feature in schema.features if _is_dates(feature)]
    said = []
    if names := [str(feature.name) for feature in dates if are_dates(feature.levels or ())]:
        s, them = ("", "it") if len(names) == 1 else ("s", "them")
        said.append(
            f"column{s} {joined(list(map(repr, names)))} hold{'' if s else 's'} dates as text, which have no order "
            f"here: name {them} in --dates {quote(','.join(names))}; in Python, read_table(..., dates={names}) or "
            "pd.to_datetime."
        )
    said += [
        f"column {f.name!r} holds dates as text, e.g. {(f.levels or ())[0]!r}, in a form that is not read: write them "
        "as 2024-05-31; in Python, pd.to_datetime converts them."
        for f in dates
        if not are_dates(f.levels or ())
    ]
    return said


def _held(schema: Schema) -> list[str]:
    """Return what was done about text of each row's own and about codes, and how to undo it (decision 0022)."""
    held = [feature for feature in schema.features if feature.held and not _is_dates(feature)]
    said = []
    if texts := [f.name for f in held if not f.is_numeric and not are_padded(f.levels or ())]:
        is_one, names = len(texts) == 1, listed(texts)
        kept = f"columns {names}: taken for identifiers or free text, they are kept as they are"
        if is_one:
            kept = f"column {names}: taken for an identifier or free text, it is kept as it is"
        said.append(
            f"nearly every row has a text of its own in {kept}. To let {'it' if is_one else 'one'} change, name its "
            f"kind, as in {_named_kind(texts[0], 'categorical')}, or name it in explain(vary=...)."
        )
    if codes := [f for f in held if f.name not in texts]:
        is_one, names = len(codes) == 1, listed([f.name for f in codes])
        kind = codes[0].kind
        what = "a number that counts something" if kind == "integer" else "a category that may change"
        said.append(
            f"column{'' if is_one else 's'} {names}: taken for {'a code' if is_one else 'codes'} that look"
            f"{'s like a number, it is' if is_one else ' like numbers, they are'} kept as "
            f"{'it is' if is_one else 'they are'}. If {codes[0].name!r} is {what}, say so: "
            f"{_named_kind(codes[0].name, kind)}."
        )
    return said


def _named_kind(name: Hashable, kind: str) -> str:
    return f"--kinds {quote(f'{name}={kind}')}; in Python, Schema.infer(table, kinds={{{name!r}: {kind!r}}})"


def _target_like(form: TableForm, N: Matrix, labels: Rows) -> list[Hashable]:
    """Return the columns whose values match the model's labels one to one, as those of a target column do."""
    if len(N) < TARGET_ROWS:
        return []
    of_labels = [N[labels == label] for label in np.unique(labels)]
    values = np.array([rows[0] for rows in of_labels])
    is_constant = np.all([(rows == rows[0]).all(axis=0) for rows in of_labels], axis=0)
    is_different = np.array([len(np.unique(column)) == len(column) for column in values.T])
    return [name for name, is_such in zip(form.schema.names, is_constant & is_different, strict=True) if is_such]


def probe_rows(n_rows: int) -> Rows:
    """Return the rows by which a model is recognised: up to 64, spread evenly."""
    return np.unique(np.linspace(0, n_rows - 1, num=min(N_PROBES, n_rows)).astype(np.intp))


# --- the map ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Heard:
    """What calls have found out about models, for all later calls on one map: the one thing that they write to."""

    is_copy_right: bool = True  # the copy of the model has always said what the model says
    committee: tuple[tuple[Any, ...], tuple[BlackBox, ...]] = ((), ())  # the last one's members, and how to ask them


class Whole(NamedTuple):
    """What a map stands for whose rows are a sample of a larger table."""

    n_rows: int
    n_sampled: int  # of the map's rows, the first: drawn from all rows alike; the others from those in no ball yet
    share: float  # of all rows that lie in a ball of their label


@dataclass(frozen=True, eq=False)
class Fitted:
    """The table as numbers and points, the model, its labels, and the cover."""

    space: FeatureSpace
    black_box: BlackBox
    Z: Matrix
    labels: Rows
    cover: BallCover
    probes: Matrix  # fitted rows, as numbers, by which the model is recognised
    options: dict[str, Any]  # the options that cannot change any more
    warnings: tuple[str, ...] = ()
    heard: Heard = field(default_factory=Heard)
    origin: "Fitted | None" = None  # of which this is a view with other immutable features and rules
    embedding: Embedding | None = None  # in whose points balls and neighbours live; None: in the encoded rows
    blocks: Blocks | None = None  # what changes together, every feature in one of them; None: each by itself
    whole: Whole | None = None  # the table of which the rows are a sample; None: they are all (decision 0138)

    @property
    def drawn(self) -> slice:
        """The rows that stand for the table: all, or of a larger one those that were drawn from all its rows alike."""
        return slice(None if self.whole is None else self.whole.n_sampled)

    @shared
    def neighbours(self) -> Neighbours:
        """The index of the fitted rows, made when it is first needed; of a larger table, of those drawn from all."""
        space, drawn = self.space, self.drawn
        if self.embedding is not None:
            return Neighbours(self.points, self.labels, np.ones(self.points.shape[1]), N_NEIGHBOURS)
        scales = groups_of(space), Scales(*space.to_columns)
        return Neighbours(self.Z[drawn], self.labels[drawn], space.to_unit, N_NEIGHBOURS, *scales)

    @shared
    def points(self) -> Matrix:
        """The fitted rows where balls and neighbours live."""
        return self.Z if self.embedding is None else self.embedding.points(self.space.decode_numbers(self.Z))

    @cached_property
    def constraints(self) -> Constraints:
        """The rules of the schema, bound to the encoding."""
        return Constraints(self.space, self.space.schema.rules)

    @cached_property
    def reach(self) -> Reach:
        """The rows that a row may become under these rules."""
        return Reach(self.space, self.constraints, self.ranges, self.space.is_immutable)

    @shared
    def partition(self) -> Partition | None:
        """The blocks as positions."""
        if self.blocks is None:
            return None
        of = {name: at for at, names in enumerate(self.blocks.groups.values()) for name in names}
        return Partition(np.array([of[name] for name in self.space.schema.names]), self.blocks.shrink)

    @shared
    def ranges(self) -> Matrix:
        """The smallest and largest fitted value of each numeric feature."""
        return self.space.ranges(self.Z)

    @shared
    def seen_values(self) -> tuple[Matrix, ...]:
        """Per feature: its fitted values as numbers, sorted, each once."""
        return tuple(np.unique(present(column)) for column in self.space.decode_numbers(self.Z).T)

    @shared
    def map(self) -> Map:
        """The arrays that a search needs."""
        balls = Balls(self.points[self.cover.centers], self.cover.radii, self.cover.labels)
        share = self.neighbours.share if self.embedding is None else self._share_of_encoded
        return Map(self.Z, self.labels, self.cover, share, balls, self._table())

    def prepare(self) -> None:
        """Make these arrays now, so that every process to which the map is sent gets them."""
        _ = self.map

    def _table(self) -> SearchTable:
        """Return the fitted rows in the caller's units, as the refined search sees them."""
        space, weights = self.space, weights_of(self.space.schema)
        is_level = space.is_group
        N = np.ascontiguousarray(as_given(space.form, space.decode_numbers(self.Z)))
        scale, metric = np.where(is_level, weights, 1.0 / space.span), self.options["metric"]
        if callable(metric) and proven_power(metric) is not None:
            costs = single_costs(metric, space.blocks, np.where(is_level, space.heights, weights))
            scale *= costs / weights
        centers = self.cover.centers
        radii = self.cover.radii if self.embedding is None else np.zeros(len(centers))  # of another unit than the table
        return SearchTable(N, self.labels, centers, radii, is_level, scale, weights.astype(np.float64))

    @shared
    def model_copy(self) -> Answering | None:
        """The exact copy of the model; None where it cannot be read."""
        box = self.black_box
        if box.scorer is None or box.asked is not box.model:
            return None
        return Answering.of(box.model, box.form, self.map.table.N, box.all_names or [], box.scorer.has_probabilities)

    def guess(self, N: Matrix) -> Matrix:
        """Guess how much points, in the caller's units, are of each label; all alike where there is one only."""
        n_labels = len(self.black_box.classes)
        return np.zeros((len(N), n_labels + 1)) if self.surrogate is None else self.surrogate(N)

    @shared
    def surrogate(self) -> Surrogate | None:
        """Trees learnt from the labels of fitted rows, for models that give labels alone."""
        table, n_labels = self.map.table, len(self.black_box.classes)
        return Surrogate.of(table.N[table.sample], table.labels[table.sample], n_labels)

    def reading(self) -> "Fitted":
        """Return the map with what can be read of the model: a copy of it or, where only its steps can be, of these."""
        box = self.black_box
        if self.model_copy is not None or box.scorer is None or box.asked is not box.model:
            return self
        steps = steps_of(box.model, box.form, self.map.table.N)
        return replace(self, black_box=replace(box, steps=steps)) if steps is not None else self

    def share(self, N: Matrix, labels: Rows) -> Matrix:
        """Return the share of neighbours that have a label, of points in the caller's units."""
        if self.embedding is not None:
            return self.neighbours.share(self.embedding.points(N), labels)
        found = self.neighbours.share_of_numbers(N, labels)
        return self.neighbours.share(self.space.encode_numbers(N), labels) if found is None else found

    def _share_of_encoded(self, Z: Matrix, labels: Rows) -> Matrix:
        return self.share(self.space.decode_numbers(Z), labels)

    def nearest_of(self, N: Matrix, rows: Rows, metric: Metric) -> Matrix:
        """Return the distances of one row to fitted ones, where balls and neighbours live."""
        assert self.embedding is not None, "the search knows the distances of encoded rows itself"
        return distances(self.embedding.points(N), self.points[rows], metric)[0]

    def nearest_balls(self, N: Matrix, labels: Rows, metric: Metric) -> Rows:
        """Return the ball of a label whose surface is nearest to each row, where the balls live."""
        assert self.embedding is not None, "the search knows the balls of encoded rows itself"
        apart = distances(self.embedding.points(N), self.points[self.cover.centers], metric) - self.cover.radii
        return np.where(self.cover.labels == labels[:, np.newaxis], apart, np.inf).argmin(axis=1)

    def committee(self, options: Options) -> Committee | None:
        """Return the committee of the options; the class labels of its members are looked up once per map."""
        models = options.committee
        if models is None:
            return None
        members, boxes = self.heard.committee
        if len(members) != len(models) or any(one is not other for one, other in zip(members, models, strict=True)):
            boxes = member_boxes(models, self.black_box, self.probes)
            self.heard.committee = (tuple(models), boxes)
        return Committee(boxes, options.agreement)

    def under(self, schema: Schema) -> "Fitted":
        """Return the same map with other immutable features and rules; all that does not depend on them is shared."""
        if schema == self.space.schema:
            return self
        return replace(self, space=self.space.under(schema), origin=self.origin or self)

    def check(self, options: Options) -> None:
        """Raise an error if an option of the fit has been changed since."""
        for name, fitted in self.options.items():
            if getattr(options, name) != fitted:
                raise ParameterError(f"{name} was {fitted!r} in fit and is {getattr(options, name)!r} now. Fit again.")
        if (self.cover.is_sampled or self.whole is not None) and STRATEGIES[options.strategy].needs_all:
            raise ParameterError(
                f"strategy={options.strategy!r} needs balls that cover every row, and these cover a sample. Fit again "
                "with it, or with cover_rows=None."
            )


def check_blocks(options: Options, causes: Any = None) -> None:
    """Raise an error where blocks are asked for beside what excludes them."""
    if causes is not None:
        raise ParameterError("causes move what follows, blocks take it from a fitted row: leave one of them out.")
    if options.private:
        raise ParameterError("a donor is a fitted row, and private keeps none: leave it or blocks out.")
    if not STRATEGIES[options.strategy].finds_labels:
        raise ParameterError(f"blocks need strategy='refined': {options.strategy!r} moves one feature at a time.")


def check_space(options: Options) -> None:
    """Raise an error where points of the caller's own are asked for beside what excludes them."""
    if not STRATEGIES[options.strategy].finds_labels:
        raise ParameterError(f"space needs strategy='refined': {options.strategy!r} walks through balls of the table.")


def _freed(schema: Schema, blocks: Blocks) -> Schema:
    """Return the schema in which codes and texts may change that are in a block: a donor's are real ones."""
    together = {name for names in blocks.groups.values() if len(names) > 1 for name in names}
    held = {name for name in schema.held if name in together}
    features = (replace(f, immutable=False, held=False) if f.name in held else f for f in schema.features)
    return replace(schema, features=tuple(features))


def groups_of(space: FeatureSpace) -> Groups:
    """Return which encoded columns are the levels of one category."""
    sizes = np.array([block.stop - block.start for block in space.blocks])
    return Groups(np.array([block.start for block in space.blocks]), sizes, space.heights)


def options_of_fit(options: Options) -> dict[str, Any]:
    """Return the options that the map depends on."""
    return {name: getattr(options, name) for name in OF_FIT}


def fit_table(
    table: Any,
    model: Any,
    schema: Schema | None,
    options: Options,
    output: str = "auto",
    client: Any = None,
    reading: Mapping[str, Any] = NOTHING_SAID,
    causes: Any = None,
    blocks: Any = None,
    points: Any = None,
    of_parts: tuple[float, Any] = (COVERAGE, None),
) -> Fitted:
    """Cover a table as a model labels it; `of_parts` are what `fit_parts` is told of a Dask DataFrame."""
    if is_dask_frame(table):
        from onbmacf._explain.fitted_parts import check_alone, fit_parts  # loaded for such tables only

        check_alone(causes=causes, blocks=blocks, space=points)
        return fit_parts(table, model, schema, options, output, client, reading, *of_parts)
    checked(options)
    if blocks is not None:
        check_blocks(options, causes)
    if points is not None:
        check_space(options)
    if schema is not None and not isinstance(schema, Schema):
        raise ParameterError(f"schema must be a Schema, got {schema!r}.")
    if causes is not None and options.private:
        raise ParameterError("private moves rows to means, which obey no equation: leave it or causes out.")
    read = Reading.of(**reading)
    form, N = _private(table, schema, options) if options.private else _numbers(table, schema)
    if blocks is not None:
        blocks = Blocks.of(blocks, form.schema.names)
        form = replace(form, schema=_freed(form.schema, blocks))
    space = FeatureSpace.of_numbers(form, N, one_hot_height(options.metric))
    followed: tuple[str, ...] = ()
    if causes is not None:
        space = replace(space, effects=Effects.of(form, N, space.readable, causes))
        followed = () if space.effects is None else space.effects.notes(N)
    Constraints(space, space.schema.rules)  # contradictions are reported before any work
    check_cover_memory(len(N), space.width, widest=_widest(space))
    box, labels = BlackBox(model, form, options.predict_chunk, output, reading=read).learn_classes(N)
    probes = probe_rows(len(N))
    box = learned(box, N[probes], probes, labels[probes])
    Z = space.encode_numbers(N)
    embedding, P = (None, Z) if points is None else Embedding.of(points, form, as_given(form, space.decode_numbers(Z)))
    groups = groups_of(space) if embedding is None else None
    check_cover_memory(len(N), P.shape[1])
    cover = cover_table(P, labels, options, client, groups)
    warnings = (*fit_warnings(form, N, cover, box, labels), *followed)
    parts = (space, box, Z, labels, cover, N[probes], options_of_fit(options), warnings)
    fitted = Fitted(*parts, embedding=embedding, blocks=blocks)
    return fitted.reading() if options.read_model else fitted


def cover_table(
    P: Matrix, labels: Rows, options: Options, client: Any = None, groups: Groups | None = None
) -> BallCover:
    """Cover all rows, or, of a table with many different ones, a sample by balls that are pure among all (0138)."""
    is_all = STRATEGIES[options.strategy].needs_all
    most = len(P) if is_all else rows_to_cover(options.cover_rows, len(P))
    sample = sample_of(P, labels, most) if most < len(P) else None
    if sample is None or len(sample) < most:  # a few different rows and their copies are covered as they are
        return build_cover(P, labels, options.metric, options.competitors, client=client, groups=groups)
    return sampled_cover(P, labels, sample, options.metric, options.competitors, groups=groups)


def _widest(space: FeatureSpace) -> str:
    """Return which column has the most levels, and what to do about it; empty where none has many."""
    sizes = [block.stop - block.start for block in space.blocks]
    most, name = max(sizes), space.schema.names[int(np.argmax(sizes))]
    if most <= MOST_COLUMNS:
        return ""
    return f" Column {name!r} has {most:,} levels: leave it out, or set it aside with immutable=[{name!r}]."


def learned(box: BlackBox, N: Matrix, rows: Rows, codes: Rows) -> BlackBox:
    """Return the black box that knows, from some fitted rows, which calls it may be asked in, and its scores."""
    return box.learn_sizes(N).learn_probability(N, rows, codes).learn_scores(N, codes)


def _numbers(table: Any, schema: Schema | None) -> tuple[TableForm, Matrix]:
    form = TableForm.fit(table, schema)
    return form, form.numbers(form.arrange(table)[0])


def _private(table: Any, schema: Schema | None, options: Options) -> tuple[TableForm, Matrix]:
    """Return the form and the numbers of the rows moved to groups of k: nothing else is kept of the rows.

    What the caller's schema leaves open (without one: all of it) is read off the moved rows.
    """
    form, N = _numbers(table, schema)
    space = FeatureSpace.of_numbers(form, N, one_hot_height(options.metric))
    M = moved(form, N, filled(space.encode_numbers(N)) * space.to_unit, options.private or 0)
    return _numbers(form.rows_for_model(M), schema)
