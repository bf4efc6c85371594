"""How often a model was asked: one set of counts per call of explain, and per part of it that runs elsewhere."""

from dataclasses import dataclass


@dataclass
class Counts:
    """How often the model was asked so far; every call of `predict` and of `predict_proba` counts, retries too."""

    n_calls: int = 0  # calls of the model
    n_questions: int = 0  # points that it was asked about
    n_model_rows: int = 0  # rows that it was given, padding included
    n_member_questions: int = 0  # points that members of a committee were asked about, each member's counted
    n_copy_questions: int = 0  # points that a copy of the model was asked about in its place

    def add(self, other: "Counts") -> None:
        """Add the counts of another part of the work."""
        self.n_calls += other.n_calls
        self.n_questions += other.n_questions
        self.n_model_rows += other.n_model_rows
        self.n_member_questions += other.n_member_questions
        self.n_copy_questions += other.n_copy_questions

    def count(self, n_questions: int, n_rows: int) -> None:
        """Count one call."""
        self.n_calls += 1
        self.n_questions += n_questions
        self.n_model_rows += n_rows
