"""The answer for one row: frozen results in raw units, with the caller's dtypes.

    Explanation -> Counterfactual, Semifactual

They are made when they are looked at: what `explain` returns is a table of them, in explanations.py. Their rows are
made when they are looked at in turn: `changes()` needs no semifactual.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from onbmacf._base.arrays import deferring
from onbmacf._base.enums import Relaxation, Status
from onbmacf._base.origin import Origin
from onbmacf._text import frames, records, wording
from onbmacf._text import records as short
from onbmacf._text.labels import Labels
from onbmacf._text.wording import Ranges
from onbmacf.blocks import Blocks
from onbmacf.certificate import Certificate


@deferring("values", "factual")
@dataclass(frozen=True, eq=False)
class Semifactual:
    """A changed row to which the model still gives the label of the factual.

    Attributes
    ----------
    values : Series
        The changed row, in the caller's dtypes.
    factual : Series
        The row that is explained.
    distance : float
        Distance from the factual, in encoded units: 1 is the whole fitted range of a number, or another category.
    changed : tuple
        Names of the features that are changed.
    effects : tuple
        With causes: names of the features that follow from these.

    """

    values: "pd.Series[Any]"
    factual: "pd.Series[Any]"
    distance: float
    changed: tuple[Hashable, ...]
    effects: tuple[Hashable, ...] = ()

    def __repr__(self) -> str:
        return short.semifactual(self)

    def changes(self) -> pd.DataFrame:
        """Return one line per changed feature, with the columns feature, before and after.

        With effects, also one for each of them, and a last column says which is which.
        """
        return frames.changes_of(self)


@deferring("values", "factual", "semifactual", "donor_values")
@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A changed row to which the model gives another label.

    Attributes
    ----------
    values : Series
        The changed row, in the caller's dtypes.
    factual : Series
        The row that is explained.
    label : object
        The label that the model gives the changed row.
    distance : float
        Distance from the factual, in encoded units: 1 is the whole fitted range of a number, or another category. What
        follows from a change costs nothing.
    changed : tuple
        Names of the features that are changed: the actions.
    released : tuple
        Those of them that are immutable, or whose rule is broken; empty unless something was given up.
    relaxation : Relaxation
        What was given up to find it; ``"none"`` if nothing was.
    ball : int or None
        The ball of ``explainer.cover_`` it was found with; None for a ball that was made for this row alone.
    plausibility : float
        Share, from 0 to 1, of its 5 nearest fitted rows that have its label.
    margin : float
        Distance, in encoded units, that it can move back towards the factual before its label is lost; measured in
        sixteenths of the way. NaN where a limit left nothing to ask with.
    probability : float or None
        The model's own probability of the label, from 0 to 1; None for a model without ``predict_proba``, NaN where a
        limit left nothing to ask with, or ``predict_proba`` raised: the reason then says so.
    semifactual : Semifactual or None
        The last point on the way there that still has the factual's label; None where there is none.
    ranges : dict of Range or None
        With ``explain(..., ranges=True)``: by changed feature, the widest range of values found around the answered one
        in which, the other values as they are, every point asked keeps the label. None where they were not asked for,
        or a limit left too little to ask with.
    box : dict of Range or None
        The same for all changed features together: every point asked whose values all lie in these ranges keeps the
        label. None as above.
    stability : float or None
        Share, from 0 to 1, of the members of the ``committee`` that say its label, too; None without a committee.
    n_members : int
        How many members that committee has; 0 without one.
    predicted : tuple of float or None
        The numbers that a regressor (`Between`) predicts of the row and of the counterfactual; None for a classifier,
        and within limits on questions.
    words : dict
        What people call columns and values: the ``labels`` of the schema, for pictures.
    effects : tuple
        With ``fit(..., causes=...)``: names of the features that follow from those changed, which differ from the
        factual's, too.
    donor : int or None
        With ``fit(..., blocks=...)``: the position among the fitted rows of the one whose values the changed blocks
        have. None without blocks.
    donor_values : Series or None
        That row.
    of_blocks : Blocks or None
        The blocks of the map.

    """

    values: "pd.Series[Any]"
    factual: "pd.Series[Any]"
    label: Any
    distance: float
    changed: tuple[Hashable, ...]
    released: tuple[Hashable, ...]
    relaxation: Relaxation
    ball: int | None
    plausibility: float
    margin: float
    probability: float | None
    semifactual: Semifactual | None
    ranges: Ranges | None = None
    box: Ranges | None = None
    stability: float | None = None
    n_members: int = 0
    predicted: tuple[float, float] | None = None
    words: Labels = field(default_factory=Labels)
    effects: tuple[Hashable, ...] = ()
    donor: int | None = None
    donor_values: "pd.Series[Any] | None" = None
    of_blocks: Blocks | None = None

    def __repr__(self) -> str:
        return short.counterfactual(self)

    @property
    def blocks(self) -> tuple[Hashable, ...]:
        """The names of the blocks that are changed; none without blocks. A feature in no block is one of its own."""
        return () if self.of_blocks is None else self.of_blocks.of_columns(self.changed)

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """The features that are changed, as `changed`: what somebody has to do."""
        return self.changed

    @property
    def n_changes(self) -> int:
        """Number of features that are changed; those that follow are not counted."""
        return len(self.changed)

    def changes(self) -> pd.DataFrame:
        """Return one line per changed feature, with the columns feature, before and after, and range if asked for."""
        return frames.changes_of(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the changed features before and after, as `plots.before_after` does; return the Axes."""
        from onbmacf import plots  # upwards, when a picture is wanted (decision 0019)

        return plots.before_after(self, ax)


@deferring("factual")
@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer for one row.

    Attributes
    ----------
    factual : Series
        The row, in the caller's dtypes; its name is the row's index label.
    label : object
        The label that the model gives the row; None where it could not be asked.
    status : Status
        How the row was answered.
    reason : str
        Why there is no counterfactual or fewer than asked for, and what the model raised; empty otherwise.
    would_need : tuple of str
        For a row without a counterfactual: the first release with which one is found, as names of immutable
        features and rules in words; empty where none helps.
    counterfactuals : tuple of Counterfactual
        The best first.
    certificate : Certificate or None
        What was proven about the answer; None unless a proof was asked for.
    days : tuple
        Names of the columns whose times are whole days; `to_dict` has no time of day there.
    words : dict
        What people call columns and values: the ``labels`` of the schema. Sentences and tables have them, data do not.
    origin : Origin
        What gave the answer, for `rules`; forgotten where answers are saved or sent.

    """

    factual: "pd.Series[Any]"
    label: Any
    status: Status
    reason: str
    would_need: tuple[str, ...]
    counterfactuals: tuple[Counterfactual, ...]
    certificate: Certificate | None = None
    days: tuple[Hashable, ...] = ()
    words: Labels = field(default_factory=Labels)
    origin: Origin = field(default_factory=Origin)

    def __repr__(self) -> str:
        return short.explanation(self)

    @property
    def semifactuals(self) -> tuple[Semifactual | None, ...]:
        """One per counterfactual; None where there is none."""
        return tuple(found.semifactual for found in self.counterfactuals)

    def sentences(self, *, rules: Any = False) -> list[str]:
        """Return each counterfactual as a sentence; for a row without one, the reason.

        Parameters
        ----------
        rules : bool or ONBMACF, default False
            Also say which conditions of the model each crosses, as `rules` does; an explainer where the answer
            was saved or sent.

        """
        if not self.counterfactuals:
            said = [f"{wording.name_of(self)}: {self.reason}"]
        else:
            said = [wording.sentence(self.label, found) for found in self.in_words().counterfactuals]
            said = [" ".join(filter(None, (one, wording.lasting_in(self.reason)))) for one in said]
            if rules:
                crossed = self._crossed(rules).sentences(self.words)
                said = [f"{one} {conditions}" for one, conditions in zip(said, crossed, strict=True)]
        return [" ".join(filter(None, (said[0], wording.proven_of(self)))), *said[1:]]

    def rules(self, explainer: Any = None) -> pd.DataFrame:
        """Return which conditions of the model each counterfactual crosses, for trees, rules and sums of these.

        Each condition was evaluated on the row and on the counterfactual by the model's own structure, in its own
        columns, and is written in those of the table: behind scalers and encoders, too.

        Parameters
        ----------
        explainer : ONBMACF, optional
            The one that gave the explanation; needed only where this was saved or sent to another process.

        Returns
        -------
        DataFrame
            One line per condition, with the row's index label: ``rank`` of the counterfactual; ``rule``, the tree or
            rule by its number in the model, none where several trees ask; ``says``, the whole rule; ``feature``,
            ``condition``, and the feature's values ``before`` and ``after``; ``holds``: "now", "no longer" or "still";
            ``fires``: whether the rule fires "now" or "no longer"; ``used_by``, how many trees ask it of this
            counterfactual; ``effect``: what it adds to the new label's probability where that is an average over
            trees, else to its lead (log odds for most) over the old one's. Effects add up to the whole change.

            Of one tree, the conditions are in their order from the root on; of several, the largest effects come first;
            of rules, those that fire now or no longer in the model's own order, the effect on a rule's first line.

        Raises
        ------
        ParameterError
            The model has no such conditions, or cannot be read.

        """
        return self._crossed(explainer).frame

    def _crossed(self, explainer: Any) -> Any:
        from onbmacf._explain.crossed import of_explanation  # upwards, when rules are wanted (decision 0133)

        return of_explanation(self, None if explainer is True else explainer)

    def in_words(self) -> "Explanation":
        """Return the same with columns and values as people call them, as text: what every view shows."""
        return self.words.answer(self) if self.words else self

    def plot(self, ax: Any = None, *, place: int = 0) -> Any:
        """Draw one of the row's counterfactuals, as `plots.before_after` does; return the Axes.

        Parameters
        ----------
        ax : matplotlib Axes or Figure, optional
            Where to draw; a new figure of pyplot by default, which a notebook shows.
        place : int, default 0
            Which counterfactual: 0 is the best. For a row without one, the reason is written.

        Returns
        -------
        Axes
            ``.figure.savefig("picture.png")`` saves it.

        """
        from onbmacf import plots  # upwards, when a picture is wanted (decision 0019)

        return plots.before_after(self, ax, place=place)

    def notice(self, explainer: Any, **options: Any) -> Any:
        """Write a notice about this decision for the person, as `report.notice` does for the row.

        Parameters
        ----------
        explainer : ONBMACF
            The one that gave the explanation: a notice asks its model more than the answer holds.
        **options
            ``target``, ``language``, ``contact``, ``review`` and others, as for `report.notice`.

        Returns
        -------
        Notice
            To be saved, or shown in a notebook.

        """
        from onbmacf import report  # upwards, when a notice is wanted (decision 0019)

        return report.notice(explainer, self.factual, **options)

    def widget(self, explainer: Any = None, target: Any = None, *, n: int | None = None) -> Any:
        """Show this row in a notebook, as `ONBMACF.widget` does: plans side by side, features to keep, values to try.

        Parameters
        ----------
        explainer : ONBMACF
            The one that gave the explanation: a widget asks its model about everything that is pressed or typed.
        target : label or labels, optional
            What the model should say; by default the labels that the counterfactuals reach.
        n : int from 1 to 5, optional
            How many plans; by default as many as there are counterfactuals, but at least 3 and at most 5.

        Returns
        -------
        PersonWidget
            Shown by the notebook where it is the last value of a cell.

        """
        from onbmacf.widget import widget_of  # upwards, when a widget is wanted (decision 0019)

        return widget_of(self, explainer, target, n)

    def to_dict(self, *, rules: Any = False) -> dict[str, Any]:
        """Return everything about this row as plain Python values, ready for JSON.

        Parameters
        ----------
        rules : bool or ONBMACF, default False
            Also which conditions of the model each counterfactual crosses: a list of dicts ``rules``, as `rules` has
            lines; an explainer where the answer was saved or sent.

        Returns
        -------
        dict
            ``row``, ``label``, ``status``, ``reason``, ``factual`` (values by column) and ``counterfactuals``: a list
            of dicts with ``label``, ``distance``, ``n_changes``, ``relaxation``, ``ball``, ``plausibility``,
            ``margin``, ``probability``, ``stability`` (only with a committee), ``changes`` (dicts of feature, before,
            after), ``values`` and ``semifactual`` (None, or a dict of ``distance``, ``changes`` and ``values``); with
            effects also ``effects``, like ``changes``, where something follows from these; with
            ranges also ``ranges`` and ``box`` (lists of dicts of feature, text, low, high, levels, reaches_low,
            reaches_high, n_asked; ``box`` may be None). Numbers keep all their digits; column names are text.

        """
        found = records.record(self)
        if rules and found["counterfactuals"]:
            for one, crossed in zip(found["counterfactuals"], self._crossed(rules).dicts(), strict=True):
                one["rules"] = crossed
        return found

    def _repr_html_(self) -> str:
        return wording.html_table([self])
