"""What gave an answer, for as long as the answer stays where it was given: it is saved and sent without it."""

from typing import Any


class Origin:
    """What made something; forgotten where it is pickled or copied."""

    def __init__(self, maker: Any = None) -> None:
        self.maker = maker

    def __repr__(self) -> str:
        return "<Origin: not known>" if self.maker is None else "<Origin: known>"

    def __reduce__(self) -> Any:
        return Origin, ()
