"""ONBMACF: the estimator. `fit` maps a table, `explain` answers for rows; `save` and `load` keep the map.

table, model  ->  fit  ->  fitted_        rows  ->  explain  ->  Explanations
"""

import warnings
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from onbmacf._balls.cover import BallCover
from onbmacf._disk.map_file import load_map, save_map
from onbmacf._explain.alone import predictions, responsiveness
from onbmacf._explain.fitted import COVERAGE, Fitted, fit_table
from onbmacf._explain.run import explain_rows
from onbmacf._search.options import Options, SettableOptions, check_names, signed_like
from onbmacf.errors import OnbmacfWarning, ParameterError
from onbmacf.explanations import Explanations
from onbmacf.schema import Schema


class ONBMACF(SettableOptions):
    """Counterfactuals and semifactuals for any classifier, from a ball cover of the training rows.

    Parameters
    ----------
    n_counterfactuals : int, default 1
        How many per row; each different or, with ``strategy="paper"``, each from another ball.
    metric : {"manhattan", "euclidean", "chebyshev"} or callable, default "manhattan"
        How distances between encoded points are measured; a callable takes two points and returns a number. With an
        attribute ``power`` of 1 or 2, to which its differences add up column by column, it is searched and proven as a
        named one is. Fixed by ``fit``.
    step_ratio : float, default 0.5
        For ``strategy="paper"``: each step of the walk is this share of the one before (r of Algorithm 3).
    max_steps : int, default 10
        For ``strategy="paper"``: steps of the walk before the goal itself is taken.
    competitors : {"uncovered", "all"}, default "uncovered"
        Which rows may become centres of balls (decision 0001). Fixed by ``fit``.
    association : {"surface", "center"}, default "surface"
        For ``strategy="paper"``: the ball of a row that none covers, by the nearest surface or centre (decision 0006).
    boundary : {"surface", "ratio"}, default "surface"
        For ``strategy="paper"``: balls meet at equal surface distance d - r or at equal ratio d / r (decision 0005).
    strategy : {"refined", "paper"}, default "refined"
        ``"paper"`` walks from the boundary as Algorithm 3 does; ``"refined"`` asks in five rounds: single changes and
        fitted rows, combinations, and twice what may be nearer or better; the last confirms (decision 0121).
    plausibility : float from 0 to 1, default 0.5
        For ``"refined"``: at 0 the nearest point counts; at 1 only points count whose 5 nearest fitted rows all have
        the label, where there are any. Between, a point may be farther for the sake of its neighbours, at a price
        that rises with this number. It gives way before an immutable feature does.
    release : {"nothing", "immutable", "rules"}, optional
        What may be given up when nothing else is found: nothing (usual), immutable features (usual with
        ``strategy="paper"``, its last resort), or rules, single ones first, immutable features included. Every view of
        an answer marks what was given up; a row without an answer reports what it would need.
    search : {"best_first", "exhaustive"}, default "best_first"
        For ``strategy="paper"``: ``"exhaustive"`` tries every opposing ball, as the paper does; ``"best_first"`` tries
        them by a lower bound of their boundary's distance, at least 128, and stops when no nearer one is to be expected
        (decision 0024).
    max_model_rows : int, optional
        The most points that the model may be asked about for one row, its own label included; the best answer found
        within it is returned. The semifactual, the margin and the probability are left out where nothing is left.
    max_model_calls : int, optional
        The most calls of the model for one row. Rows are then searched one by one. Both limits hold if both are given.
    predict_chunk : int, default 512
        The most rows in one call of the model. Where its labels and probabilities differ with the number of rows in a
        call, as ``fit`` finds out, calls are padded to this size, so that answers do not depend on batching. With the
        default, and where that makes no difference, calls for 100 different rows or more have up to eight times as
        many. Fixed by ``fit``.
    n_jobs : int, default 1
        Processes that explain; the answers are the same for any number.
    committee : list or tuple of models, optional
        Models trained like the one that is explained, as `committee` makes them; each is anything that ``fit`` accepts
        as a model. Every counterfactual then has a ``stability``: the share of them that agree.
    agreement : float from 0 to 1, default 0
        The least share of the committee that must give a point the model's label before the search accepts it. The
        members are asked only about points that the model accepts, and are in no count or limit of the model's calls.
    private : int of at least 2, optional
        Answer from groups of at least so many fitted rows instead of from the rows: each row is moved to the means and
        commonest levels of its group before the map is made, and nothing else is kept of the rows: neither the
        answers nor a saved map depend on a single one beyond its group. Answers are farther and some rows get none
        (decision 0061). Fixed by ``fit``.
    cover_rows : "auto", int or None, default "auto"
        How many rows the balls are made of. ``"auto"``: all, up to 50,000; of a larger table a sample of 20,000, chosen
        by a hash of what is in them. No ball of a sample holds a row of another label among *all* rows, and neighbours
        are looked for among all; `cover_.share` says how many rows lie in a ball. None: all rows, as always with
        ``strategy="paper"``, which takes minutes from a million rows on (decision 0138). Fixed by ``fit``.

    effort : {"full", "half", "quarter"} or float, default "full"
        How many points are asked about per row, in parts of the usual number (some 500): fewer are faster where the
        model is slow per row, and answers get farther (docs/speed has the curve).
    read_model : bool, default True
        Where the model can be read (linear models, trees, forests, boosting, rules and small networks, also at the end
        of a pipeline; docs/questions/which-models.md), let the search ask an exact copy of it, and the model itself
        once, to confirm what is returned (decision 0122). False: only the model is ever asked.

    decimals : {"round", "exact"}, default "round"
        Whether a number may change up to 2 % more than it must where that makes it rounder: 24,000, not 23,917.46.
        "exact": no more than it must, as always at ``plausibility=0``.

    Attributes
    ----------
    cover_ : BallCover
        The balls.
    classes_ : array
        The model's labels on the fitted rows, sorted; codes are positions here.
    schema_ : Schema
        The features, with their levels and rules.
    labels_ : array of int
        The code of the model's label of each fitted row.
    Z_ : array
        The fitted rows, encoded.
    call_sizes_ : tuple of int
        Rows of calls by which ``fit`` saw that their number makes no difference; ``predict_chunk`` alone if it does.
    causes_ : Causes or None
        What follows from what.
    blocks_ : Blocks or None
        What changes together, every feature in one of them.
    warnings_ : tuple of str
        What ``fit`` noticed.

    Examples
    --------
    >>> from onbmacf.datasets import load_heart
    >>> table, y = load_heart()
    >>> model = lambda rows: (rows["tobacco"] + rows["ldl"] > 10).map({True: "risk", False: "fine"})
    >>> explainer = ONBMACF().fit(table, model, schema=Schema.infer(table, immutable=["age"]))
    >>> answer = explainer.explain(table.iloc[[0]])[0]
    >>> answer.label, answer.counterfactuals[0].label, answer.counterfactuals[0].n_changes
    ('risk', 'fine', 1)

    """

    fitted_: Fitted  # the map: set by fit and load

    @signed_like(Options.__init__)
    def __init__(self, *n_counterfactuals: int, **options: Any) -> None:
        try:
            check_names(options)
        except ParameterError as error:
            raise TypeError(str(error)) from None
        if len(n_counterfactuals) > 1:
            raise TypeError(f"only n_counterfactuals may be given by position, got {len(n_counterfactuals)} values.")
        Options.__init__(self, *n_counterfactuals, **options)

    def __repr__(self) -> str:
        if not hasattr(self, "fitted_"):
            return super().__repr__()
        rows, features, labels = len(self.Z_), len(self.schema_.features), len(self.classes_)
        whole = self.fitted_.whole
        n_rows, among = rows, ""
        if whole is not None:
            n_rows, among = whole.n_rows, f", neighbours among {whole.n_sampled:,} of them"
        return f"<{super().__repr__()} fitted on {n_rows:,} rows of {features:,} features, with {labels} labels{among}>"

    def fit(
        self,
        table: Any,
        model: Any,
        schema: Schema | None = None,
        *,
        output: str = "auto",
        threshold: float | None = None,
        classes: Any = None,
        target: Any = None,
        causes: Any = None,
        blocks: Any = None,
        space: Any = None,
        client: Any = None,
        coverage: float = COVERAGE,
        passes: Any = None,
    ) -> "ONBMACF":
        """Map the table as the model labels it.

        Parameters
        ----------
        table : DataFrame of pandas or polars, table of pyarrow, 2-D array, or Dask DataFrame
            The rows, without the target column. A table of pyarrow is a DataFrame of pandas in pyarrow's dtypes, for
            the model and in the answers. A Dask DataFrame may be larger than memory: the map holds a sample of its rows
            (``cover_rows``; 200,000 by default), whose balls are pure among all (docs/cluster.md).
        model : object with ``predict``, or callable
            Gets rows in the form of `table` (frame or array, same columns and dtypes) and returns labels, class
            probabilities or scores. Also a ``Booster`` of xgboost or lightgbm, or a torch module.
        schema : Schema, optional
            What the columns are; inferred from the table by default.
        output : {"auto", "label", "probability"}
            What the model returns, where that is not plain.
        threshold : float, optional
            The least score that means the second of two classes. Scores are what ``predict_proba`` gives
            the second class where the model has it, otherwise the numbers that it returns.
        classes : sequence of labels, optional
            The names of the classes, in the order of the model's columns or numbers; of a threshold's two sides, the
            lower first.
        target : Between, optional
            For a regressor: the range that its numbers should reach. The labels are then "below", "inside" and "above",
            and `explain` looks for "inside" unless told otherwise.
        causes : Causes, optional
            What follows from what: derived columns, and effects whose mechanism is learned from the table. A search
            then changes causes, and what follows is changed with them before the model is asked.
        blocks : Blocks or dict, optional
            Features that change together, to the values of one fitted row: ``{"address": ["street", "city"]}``,
            ``Blocks.grid((8, 8), 2)`` for pictures, ``Blocks.segments(150, 10)`` for series. Answers then have a
            ``donor`` and ``blocks``; fewer blocks come first.
        space : callable, optional
            Makes a point of each row (an embedding, a network's last layer, a projection): gets rows as the model does,
            returns a 2-D array of numbers. Balls, neighbours and donors are then those of its points; changes and
            their distances stay in the table. A saved map holds its name only.
        client : dask.distributed.Client, optional
            Lends its workers to the cover of a large table; the cover is the same with and without.
        coverage : float below 1, default 0.999
            Of a Dask DataFrame, the least share of the rows that must lie in a ball of their label: the sample grows
            until it is reached. A share close to 1 may need as many balls as a cover of all rows.
        passes : path, optional
            A folder that keeps finished passes over a Dask DataFrame: the same `fit`, stopped and called again, goes on
            from there. It holds labels and rows; delete it when the map is saved.

        Returns
        -------
        ONBMACF
            This explainer, fitted.

        """
        reading = {"threshold": threshold, "classes": classes, "between": target}
        how = (output, client, reading, causes, blocks, space, (coverage, passes))
        self.fitted_ = fit_table(table, model, schema, self._options(), *how)
        for message in self.fitted_.warnings:
            warnings.warn(message, OnbmacfWarning, stacklevel=2)
        return self

    def explain(
        self,
        rows: Any,
        target: Any = None,
        *,
        immutable: Any = None,
        vary: Any = None,
        rules: Any = None,
        n: Any = None,
        plausibility: Any = None,
        min_probability: Any = None,
        min_neighbours: Any = None,
        front: bool = False,
        ranges: bool = False,
        prove: Any = False,
        prove_seconds: float = 1.0,
        max_seconds: float | None = None,
        client: Any = None,
    ) -> Explanations:
        """Explain rows.

        What is asked may differ from call to call without fitting again: the answers are those of an explainer fitted
        with it. The first eight arguments after `rows` may also differ from row to row: a Series has one value per row,
        matched by its index; the name of a column of `rows` reads the values there; a list has one value per row, in
        order, where a list is not one value already (for `target`, `immutable` and `vary`: a list of lists). A missing
        entry asks as if the argument were not given.

        Parameters
        ----------
        rows : DataFrame, Series, dict, list of dicts, array or Dask DataFrame
            One or many rows with the columns of the fitted table. Tables of polars and pyarrow are read by name, too.
        target : label or labels, optional
            What the model should say; by default any label but the row's own.
        immutable : iterable of hashable, optional
            The features that must keep their value, instead of those that the schema names; empty: all may change.
            Identifiers and free text that `Schema.infer` has found are kept all the same.
        vary : iterable of hashable, optional
            The only features that may change: the complement of `immutable`.
        rules : Rules or dict, optional
            The rules, instead of the schema's; a dict has the keys of `Rules.from_dict`. Costs (``weight``) stay those
            of the schema: they shape the map.
        n : int, optional
            How many counterfactuals, instead of ``n_counterfactuals``.
        plausibility : float from 0 to 1, optional
            The dial, instead of the explainer's.
        min_probability : float from 0 to 1, or "lasting", optional
            The least probability that the model must give the label; needs ``predict_proba``. ``"lasting"`` is 0.6:
            such answers hold after retraining more often than the nearest ones. By default 0.6 where the model has
            probabilities, and a row without such an answer gets the best of any probability, whose reason says that it
            may not last; 0 for the nearest whatever its probability, as with ``prove`` and ``strategy="paper"``.
        min_neighbours : int from 0 to 5, optional
            The least number of an answer's 5 nearest fitted rows that must have its label: ``plausibility`` as a bound
            (4 of 5 is 0.8). Nothing else is an answer, also in the front and whatever the dial says; a row without one
            says that none was found. By default 0, no bound.
        front : bool, default False
            Return, instead of the n best, every counterfactual found that no other beats in distance, number of
            changes and plausibility at once.
        ranges : bool, default False
            Also ask how far the changed values may move before the label is lost: `Counterfactual.ranges` and ``box``.
            This costs some hundred to some thousand more questions per counterfactual.
        prove : bool or model, default False
            Prove that the first counterfactual is the nearest, or that none exists: ``explanation.certificate`` says
            what is proven. The nearest answer known comes first, whatever its plausibility. For linear models, trees,
            forests, boosted trees, rules and small networks, averages, votes and calibrations of some of them, also at
            the end of a pipeline (docs/questions/is-there-nothing-nearer.md); instead of True, give the model
            itself where ``fit`` was given a function around it.
        prove_seconds : float, default 1
            The most seconds to spend on the proof of one row; the certificate says how far it got.
        max_seconds : float, optional
            The most seconds for the whole call: then the best found so far is returned, and rows that were not reached
            say so. A call of the model that is under way is waited for. Where the time is up, answers depend on how
            fast the machine is.
        client : dask.distributed.Client, optional
            Lets its workers explain.

        Returns
        -------
        Explanations
            One answer per row, in order. For a Dask DataFrame: a Dask DataFrame of what `Explanations.to_frame` gives
            for each partition, with a status and a reason, and one line for each row without a counterfactual.

        """
        of_rows = (target, immutable, vary, rules, n, plausibility, min_probability, min_neighbours)
        asked = (*of_rows, front, ranges, prove, prove_seconds, max_seconds)
        return explain_rows(self._map(), self._options(), rows, asked, client)

    def predictions(self, rows: Any) -> pd.DataFrame:
        """Ask the model about rows, without looking for counterfactuals.

        Parameters
        ----------
        rows : DataFrame, Series, dict or array
            One or many rows with the columns of the fitted table.

        Returns
        -------
        DataFrame
            One line per row, with the caller's index: ``label``; ``probability`` of the label, NaN where the model has
            none; ``status``, which is "predicted", or that of `explain` for a row that cannot be asked; ``reason``,
            which is then why.

        Examples
        --------
        >>> from onbmacf.datasets import load_heart
        >>> table, y = load_heart()
        >>> explainer = ONBMACF().fit(table, lambda rows: (rows["ldl"] > 5).astype(int))
        >>> explainer.predictions(table.iloc[[0]])["label"].item()
        1

        """
        return predictions(self._map(), self._options(), rows)

    def widget(self, row: Any, target: Any = None, *, n: int = 3) -> Any:
        """Show one row in a notebook: the decision, plans side by side, features to keep, values to try.

        Needs the extra ``widget``; works in Jupyter, VS Code and marimo.

        Parameters
        ----------
        row : DataFrame of one row, Series or dict
            The row, with the columns of the fitted table.
        target : label or labels, optional
            What the model should say; by default any label but the row's own.
        n : int from 1 to 5, default 3
            How many plans.

        Returns
        -------
        PersonWidget
            Shown by the notebook where it is the last value of a cell. ``.answer`` is the `Explanation` shown.

        """
        from onbmacf.widget import person_widget  # upwards, when a widget is wanted (decision 0019)

        return person_widget(self, row, target, n)

    def responsiveness(self, rows: Any, target: Any = None) -> pd.DataFrame:
        """Ask which features would change the label by themselves, everything else as it is.

        Parameters
        ----------
        rows : DataFrame, Series, dict or array
            One or many rows with the columns of the fitted table.
        target : label or labels, optional
            What the model should say; by default any label but the row's own.

        Returns
        -------
        DataFrame
            One line per row and feature that may change, with the caller's index: ``feature``; ``n_asked``, the
            different values that the model was asked about (those of the fitted rows that the rules allow, evenly
            spaced ones where there are more than 64); ``n_reached``, those of them that reach a wanted label;
            ``share``, the responsiveness: the second over the first, NaN if none was asked; ``nearest``, the nearest
            of those reached, None if there is none. Rows that cannot be asked, or have a wanted label already, have no
            lines.

        Examples
        --------
        >>> from onbmacf.datasets import load_heart
        >>> table, y = load_heart()
        >>> explainer = ONBMACF().fit(table, lambda rows: (rows["ldl"] > 5).astype(int))
        >>> frame = explainer.responsiveness(table.iloc[[0]])
        >>> frame[frame["share"] > 0]["feature"].tolist()
        ['ldl']

        """
        return responsiveness(self._map(), self._options(), rows, target)

    def save(self, path: Any) -> None:
        """Write the map, without the model and its committee, to one file. It holds the fitted rows."""
        save_map(path, self._map(), self._options())

    @classmethod
    def load(cls, path: Any, model: Any, committee: Any = None, causes: Any = None, space: Any = None) -> "ONBMACF":
        """Read a map written by `save`, for the same model: it is asked some fitted rows again first.

        A committee is not in the file either: give it again where ``agreement`` was set. Nor are functions and
        regressors of ``causes``, and ``space``; linear mechanisms are.
        """
        fitted, options = load_map(path, model, causes, space)
        explainer = cls(**options, committee=committee)
        explainer.fitted_ = fitted
        return explainer

    @property
    def cover_(self) -> BallCover:
        """The balls."""
        return self._map().cover

    @property
    def classes_(self) -> NDArray[Any]:
        """The model's labels, in the order of their codes."""
        return self._map().black_box.classes

    @property
    def schema_(self) -> Schema:
        """The features, with their levels."""
        return self._map().space.schema

    @property
    def labels_(self) -> NDArray[Any]:
        """The code of the model's label of each fitted row."""
        return self._map().labels

    @property
    def Z_(self) -> NDArray[Any]:  # noqa: N802 - Z is encoded everywhere
        """The fitted rows, encoded."""
        return self._map().Z

    @property
    def call_sizes_(self) -> tuple[int, ...]:
        """Rows that a call of the model may have: several sizes where its answers were seen not to depend on them."""
        box = self._map().black_box
        return box.sizes or (box.largest,)

    @property
    def causes_(self) -> Any:
        """What follows from what, as `fit` was told; None where nothing was said."""
        effects = self._map().space.effects
        return None if effects is None else effects.causes

    @property
    def blocks_(self) -> Any:
        """What changes together, every feature in one of them; None where `fit` was told nothing."""
        return self._map().blocks

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What `fit` noticed."""
        return self._map().warnings

    def _map(self) -> Fitted:
        fitted: Fitted | None = getattr(self, "fitted_", None)
        if fitted is None:
            raise ParameterError("this explainer is not fitted: call fit(table, model) first.")
        return fitted
