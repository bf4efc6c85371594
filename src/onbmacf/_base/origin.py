"""What gave an answer, as long as it lives: answers keep nothing alive, and travel without it."""

from typing import Any
from weakref import ref


class Origin:
    """A weak reference that is forgotten where it is pickled or copied."""

    def __init__(self, maker: Any = None) -> None:
        self._made_by = None if maker is None else ref(maker)

    def __call__(self) -> Any:
        """Return what gave the answer; None where it is gone, or was never known."""
        return None if self._made_by is None else self._made_by()

    def __repr__(self) -> str:
        return "<Origin: known>" if self() is not None else "<Origin: not known>"

    def __reduce__(self) -> Any:
        return Origin, ()
