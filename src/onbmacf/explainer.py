"""ONBMACF: the estimator. `fit` maps the table, `explain` answers for rows; the stages are in pipeline.py.

table, model  ->  fit  ->  space_, cover_        rows  ->  explain  ->  Explanations
"""

import os
import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.associate import ASSOCIATIONS, home_balls
from onbmacf._balls.cover import COMPETITORS, build_cover, check_cover_memory
from onbmacf._balls.distance import Matrix, Metric, check_metric, distances
from onbmacf._balls.geometry import BOUNDARIES
from onbmacf._balls.neighbours import Neighbours
from onbmacf._balls.recover import absorb
from onbmacf._base.checks import check_between, check_choice, check_count, check_within, listed
from onbmacf._base.executor import run_all
from onbmacf._batch.distributed import explain_on, explain_partitions, is_dask_frame
from onbmacf._batch.factuals import Part, Questions, answer, joined, search_part
from onbmacf._batch.fit_checks import fit_warnings, probe_rows
from onbmacf._batch.infeasible import Wish, with_reasons
from onbmacf._disk.map_file import FittedMap
from onbmacf._rows.constraints import Constraints
from onbmacf._rows.form import TableForm
from onbmacf._rows.model import BlackBox
from onbmacf._rows.space import FeatureSpace, one_hot_height
from onbmacf._search.pairs import Features
from onbmacf._search.search import SEARCHES, STRATEGIES, Ground, chunks
from onbmacf.errors import ModelError, OnbmacfWarning, ParameterError
from onbmacf.explanation import Explanations
from onbmacf.schema import Schema

Rows = NDArray[np.intp]
RELEASES = ("immutable", "nothing", "rules")
FRONT_DIALS = (0.0, 0.6, 1.0)  # plausibilities at which the front is searched
FRONT_POINTS = 12  # counterfactuals per row and dial that compete for the front
RECOVERIES = ("overlay", "persist")
PARAMETERS = (
    "n_counterfactuals",
    "metric",
    "step_ratio",
    "max_steps",
    "competitors",
    "association",
    "boundary",
    "recover",
    "strategy",
    "plausibility",
    "release",
    "search",
    "max_model_rows",
    "predict_chunk",
    "n_jobs",
)
N_NEIGHBOURS = 5  # y of the field's yNN
N_SAMPLE = 2  # rows explained to know what the answers to a Dask DataFrame look like


class ONBMACF:
    """Counterfactuals and semifactuals for any classifier, from a ball cover of the training rows.

    Parameters
    ----------
    n_counterfactuals : how many per row: each different, or in the paper's strategy each from another ball.
    metric : "manhattan", "euclidean", "chebyshev", or a function of two encoded points.
    step_ratio : r of Algorithm 3: each step of the walk is this share of the one before.
    max_steps : steps of the walk before the goal itself is taken.
    competitors : which rows may become centres, "uncovered" or "all" (decision 0001).
    association : the ball of a row that none covers: nearest "surface" or nearest "center" (decision 0006).
    boundary : balls meet at equal "surface" distance d - r or at equal "ratio" d / r (decision 0005).
    recover : what happens to a home ball of another label: an "overlay" for this row, or "persist" (0011).
    strategy : "paper" walks from the boundary as Algorithm 3 does; "refined" also reduces in a second order, tightens
        the best points and prefers counterfactuals that change different features (decision 0025).
    plausibility : for "refined", a dial from 0 (the nearest point) to 1 (only points whose 5 nearest fitted rows all
        have the label, where there are any). Between, a point may be farther for the sake of its neighbourhood, at a
        price that rises with the dial (decision 0025). It gives way before an immutable feature does.
    release : what may be given up when nothing else is found: "immutable" features (the paper's last resort),
        "nothing", or as few "rules" as will do. What was given up is said with each answer.
    search : "exhaustive" tries every opposing ball, as the paper does; "best_first" tries them by a lower bound of
        their boundary's distance, at least 128, and stops when no nearer one is to be expected (decision 0024).
    max_model_rows : the most rows that a search may ask of the model for one factual; the best so far is returned.
    predict_chunk : rows per question to the model. Every question has this size (it is padded), so that answers
        do not depend on batching; make it small for a model that is slow per row.
    n_jobs : processes that explain; the answers are the same for any number.

    >>> from onbmacf.datasets import load_heart
    >>> table, y = load_heart()
    >>> model = lambda rows: (rows["tobacco"] + rows["ldl"] > 10).map({True: "risk", False: "fine"})
    >>> explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    >>> answer = explainer.explain(table.iloc[[0]])[0]
    >>> answer.label, answer.counterfactuals[0].label, answer.counterfactuals[0].n_changes
    ('risk', 'fine', 1)

    """

    def __init__(
        self,
        n_counterfactuals: int = 1,
        *,
        metric: Metric = "manhattan",
        step_ratio: float = 0.5,
        max_steps: int = 10,
        competitors: str = "uncovered",
        association: str = "surface",
        boundary: str = "surface",
        recover: str = "overlay",
        strategy: str = "refined",
        plausibility: float = 0.5,
        release: str = "immutable",
        search: str = "best_first",
        max_model_rows: int | None = None,
        predict_chunk: int = 512,
        n_jobs: int = 1,
    ) -> None:
        self.n_counterfactuals = n_counterfactuals
        self.metric = metric
        self.step_ratio = step_ratio
        self.max_steps = max_steps
        self.competitors = competitors
        self.association = association
        self.boundary = boundary
        self.recover = recover
        self.strategy = strategy
        self.plausibility = plausibility
        self.release = release
        self.search = search
        self.max_model_rows = max_model_rows
        self.predict_chunk = predict_chunk
        self.n_jobs = n_jobs

    def fit(
        self, table: Any, model: Any, schema: Schema | None = None, *, output: str = "auto", client: Any = None
    ) -> "ONBMACF":
        """Map the table as the model labels it.

        model has `predict` or is a callable, and gets rows in the form of `table` (frame or array, same columns
        and dtypes). output says what it returns where that is not plain: "label" or "probability". A Dask client
        lends its workers to the cover of a large table, which is the same with and without.
        """
        self._check_parameters()
        form = TableForm.fit(table, schema)
        N = form.numbers(form.arrange(table)[0])
        self.space_ = FeatureSpace.of_numbers(form, N, one_hot_height(self.metric))
        Constraints(self.space_, self.space_.schema.rules)  # contradictions are told before any work
        check_cover_memory(len(N), self.space_.width)
        self.black_box_ = BlackBox(model, form, self.predict_chunk, output)
        self.labels_ = self.black_box_.learn_classes(N)
        self.Z_ = self.space_.encode_numbers(N)
        self.cover_ = build_cover(self.Z_, self.labels_, self.metric, self.competitors, client=client)
        self.neighbours_: Neighbours | None = None  # made when first needed
        self.probes_ = N[probe_rows(len(N))]
        self.warnings_ = fit_warnings(form, N, self.cover_, self.black_box_, self.labels_)
        for message in self.warnings_:
            warnings.warn(message, OnbmacfWarning, stacklevel=2)
        return self

    def explain(
        self,
        rows: Any,
        target: Any = None,
        *,
        min_probability: float = 0.0,
        front: bool = False,
        client: Any = None,
    ) -> Explanations:
        """Explain rows: a DataFrame, Series, dict or array.

        target is a label, several labels, or None for any label but the row's own. min_probability asks for a label
        the model is that sure of. front=True returns, instead of the n best, the whole trade: every counterfactual
        found that no other beats in distance, number of changes and plausibility at once.
        A Dask client lets its workers explain; a Dask DataFrame gives a Dask DataFrame, namely what `to_frame` gives
        of each partition.
        """
        self._check_parameters()
        self._check_fitted()
        check_within("min_probability", min_probability, 0, 1)
        wish = Wish(self._target_codes(target), min_probability, front)
        if is_dask_frame(rows):
            sample = self.space_.form.frame(self.probes_[:N_SAMPLE])
            return explain_partitions(self._far(wish), rows, sample, client)
        frame, ignored = self.space_.form.arrange(rows)
        for message in ignored:
            warnings.warn(message, OnbmacfWarning, stacklevel=2)
        if client is not None and len(frame):
            answers = explain_on(client, self._far(wish), frame)
        else:
            answers = with_reasons(self, self.explain_frame(frame, wish), wish)
        return replace(answers, warnings=(*self.warnings_, *ignored))

    def explain_frame(self, frame: pd.DataFrame, wish: Wish) -> Explanations:
        """Explain rows in the fitted order of columns, by this explainer's rules alone."""
        box, constraints = self.black_box_, Constraints(self.space_, self.space_.schema.rules)
        calls, asked = box.n_calls, box.n_rows
        questions = Questions.of(frame, self.space_, box, wish.targets, constraints, wish.min_probability)
        parts = self._search(questions, wish)
        n = self.n_counterfactuals
        found, is_refined = joined(parts, self.space_.width), self.strategy == "refined"
        answers = answer(questions, found, self.metric, n, self._index(), wish.front, is_refined)
        elsewhere = [part for part in parts if part.process != os.getpid()]
        return replace(
            answers,
            n_calls=box.n_calls - calls + sum(part.n_calls for part in elsewhere),
            n_rows=box.n_rows - asked + sum(part.n_rows for part in elsewhere),
        )

    def _far(self, wish: Wish) -> Callable[[pd.DataFrame], Explanations]:
        """Return the function from rows to answers that other machines get, with all it needs."""
        if self.recover == "persist":
            raise ParameterError('recover="persist" answers row after row: it cannot be shared out among workers.')
        self._index()
        return partial(_explain_alone, self, wish)

    def _search(self, questions: Questions, wish: Wish) -> list[Part]:
        lines = questions.open_lines()
        if self.recover == "persist":
            return [self._absorb_and_search(questions.part(lines[i : i + 1])) for i in range(len(lines))]
        slices = chunks(len(lines), len(self.cover_), self.n_jobs, self.search)
        pieces = [questions.part(lines[piece]) for piece in slices]
        ground = self._ground(asks_all=wish.min_probability > 0)
        if not wish.front:
            return run_all(partial(search_part, ground, n=self.n_counterfactuals), pieces, self.n_jobs, "explaining")
        if self.max_model_rows is not None:
            ground = replace(ground, max_model_rows=max(1, self.max_model_rows // len(FRONT_DIALS)))
        grounds = [replace(ground, plausibility=dial, neighbours=self._index()) for dial in FRONT_DIALS]
        return [
            part
            for ground in grounds
            for part in run_all(partial(search_part, ground, n=FRONT_POINTS), pieces, self.n_jobs, "explaining")
        ]

    @property
    def classes_(self) -> NDArray[Any]:
        """The model's labels, in the order of their codes."""
        return self.black_box_.classes

    @property
    def schema_(self) -> Schema:
        """The features, with their levels."""
        return self.space_.schema

    def save(self, path: Any) -> None:
        """Write the map, without the model, to one file."""
        self._check_fitted()
        parameters = {name: getattr(self, name) for name in PARAMETERS}
        box = self.black_box_
        FittedMap(
            parameters,
            box.output,
            self.classes_.tolist(),
            list(self.warnings_),
            self.space_,
            self.Z_,
            self.labels_,
            self.cover_,
            self.probes_,
        ).save(path)

    @classmethod
    def load(cls, path: Any, model: Any) -> "ONBMACF":
        """Read a map written by `save`, for the same model: it is asked some fitted rows again first."""
        fitted = FittedMap.load(path)
        explainer = cls(**fitted.parameters)
        explainer.space_, explainer.Z_, explainer.labels_ = fitted.space, fitted.Z, fitted.labels
        explainer.cover_, explainer.warnings_ = fitted.cover, tuple(fitted.warnings)
        classes = np.array([*fitted.classes, None], dtype=object)[:-1]
        box = BlackBox(model, fitted.space.form, explainer.predict_chunk, fitted.output, classes)
        explainer.black_box_ = box
        explainer.probes_ = fitted.probes
        differ = int((box.ask(fitted.probes) != fitted.labels[probe_rows(len(fitted.Z))]).sum())
        if differ:
            raise ModelError(
                f"{path} was made for another model: {differ} of {len(fitted.probes)} probe rows differ. Fit again."
            )
        return explainer

    def __repr__(self) -> str:
        state = f": {len(self.cover_)} balls over {len(self.Z_)} rows" if hasattr(self, "cover_") else ""
        return f"<ONBMACF n_counterfactuals={self.n_counterfactuals}{state}>"

    def relaxed(self, **changes: Any) -> "ONBMACF":
        """Return this explainer with other parameters or rules, on the same map."""
        other = copy(self)
        rules = changes.pop("rules", None)
        for name, value in changes.items():
            setattr(other, name, value)
        if rules is not None:
            form = replace(self.space_.form, schema=self.space_.schema.with_rules(rules))
            other.space_ = replace(self.space_, form=form)
        return other

    def _absorb_and_search(self, question: Questions) -> Part:
        self._absorb(question.z[0], int(question.codes[0]))
        return search_part(self._ground(), question, n=self.n_counterfactuals)

    def _ground(self, asks_all: bool = False) -> Ground:
        space = self.space_
        starts = np.array([block.start for block in space.blocks])
        constraints = Constraints(space, space.schema.rules)
        constrain = constraints.constrain if constraints or asks_all else None
        features = Features(
            starts,
            space.feature_of,
            space.is_immutable,
            constrain,
            space.schema.rules.max_changes,
            self.release == "immutable",
        )
        return Ground(
            self.Z_,
            self.labels_,
            self.cover_,
            features,
            self.metric,
            self.competitors,
            self.association,
            self.boundary,
            self.step_ratio,
            self.max_steps,
            self.search,
            self.max_model_rows,
            self.strategy,
            self.plausibility,
            None if self.strategy == "paper" or self.plausibility == 0 else self._index(),
        )

    def _index(self) -> Neighbours:
        """Return the index of fitted rows, made when it is first needed."""
        index: Neighbours | None = getattr(self, "neighbours_", None)
        if index is None:
            self.neighbours_ = index = Neighbours(self.Z_, self.labels_, self.space_.to_unit, N_NEIGHBOURS)
        return index

    def _absorb(self, z: Matrix, code: int) -> None:
        """Let a row of another label than its home ball into the map for good."""
        apart = distances(z[np.newaxis], self.Z_[self.cover_.centers], self.metric)
        home = int(home_balls(apart, self.cover_.radii, self.association, self.boundary)[0])
        if self.cover_.labels[home] != code:
            self.cover_, self.Z_, self.labels_ = absorb(
                self.cover_, self.Z_, self.labels_, z, code, home, self.metric, self.competitors
            )

    def _target_codes(self, target: Any) -> Rows | None:
        if target is None:
            return None
        labels = list(target) if isinstance(target, Iterable) and not isinstance(target, str | bytes) else [target]
        known = self.classes_.tolist()
        unknown = [label for label in labels if label not in known]
        if unknown or not labels:
            raise ParameterError(f"target must be among the model's labels {listed(known)}, got {listed(unknown)}.")
        return np.array([known.index(label) for label in labels], dtype=np.intp)

    def _check_parameters(self) -> None:
        check_count("n_counterfactuals", self.n_counterfactuals)
        check_metric(self.metric)
        check_between("step_ratio", self.step_ratio, 0, 1)
        check_count("max_steps", self.max_steps)
        check_choice("competitors", self.competitors, COMPETITORS)
        check_choice("association", self.association, ASSOCIATIONS)
        check_choice("boundary", self.boundary, BOUNDARIES)
        check_choice("recover", self.recover, RECOVERIES)
        check_choice("strategy", self.strategy, STRATEGIES)
        check_within("plausibility", self.plausibility, 0, 1)
        check_choice("release", self.release, RELEASES)
        check_choice("search", self.search, SEARCHES)
        if self.max_model_rows is not None:
            check_count("max_model_rows", self.max_model_rows)
        check_count("predict_chunk", self.predict_chunk)
        check_count("n_jobs", self.n_jobs)

    def _check_fitted(self) -> None:
        if not hasattr(self, "cover_"):
            raise ParameterError("this explainer is not fitted: call fit(table, model) first.")


def _explain_alone(explainer: ONBMACF, wish: Wish, rows: pd.DataFrame) -> Explanations:
    """Explain on a worker: in this thread alone, with counters of its own (others may use the same map)."""
    own = explainer.relaxed(n_jobs=1, black_box_=replace(explainer.black_box_, n_calls=0, n_rows=0, unseen=[]))
    return with_reasons(own, own.explain_frame(own.space_.form.arrange(rows)[0], wish), wish)
