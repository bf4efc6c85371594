"""Words of the command line to the columns, labels and row positions that they name."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from onbmacf._base.checks import did_you_mean, listed
from onbmacf.errors import ParameterError, RowsError


def columns_of(words: Iterable[str], columns: Sequence[Any], option: str) -> list[str]:
    """Return column names from words that may join several with commas; unknown ones are an error.

    >>> columns_of(["age,sex", "last, first"], ["age", "sex", "last, first"], "--drop")
    ['age', 'sex', 'last, first']
    """
    names: list[str] = []
    for word in words:
        names += [word] if word in columns else split(word)
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise ParameterError(f"{option} names {name!r}, which is not a column.{hint} Columns: {listed(columns)}.")
    return names


def kinds_of(words: Iterable[str], columns: Sequence[Any]) -> tuple[dict[Any, Any], dict[Any, list[str]]]:
    """Return the kinds of columns, and the levels of ordinal ones from the lowest, from words such as a=binary.

    >>> kinds_of(["zip=categorical,size=S<M<L"], ["zip", "size"])
    ({'zip': 'categorical'}, {'size': ['S', 'M', 'L']})
    """
    kinds: dict[Any, Any] = {}
    ordinal: dict[Any, list[str]] = {}
    for word in split(",".join(words)):
        name, equals, kind = word.rpartition("=")
        if not equals:
            raise ParameterError(f"--kinds takes column=kind, or column=low<middle<high, got {word!r}.")
        columns_of([name], columns, "--kinds")
        if "<" in kind:
            ordinal[name] = [level.strip() for level in kind.split("<")]
        else:
            kinds[name] = kind.strip()
    return kinds, ordinal


def bands_of(words: Iterable[str], columns: Sequence[Any]) -> dict[Hashable, list[Any]]:
    """Return where the bands of columns begin, from words such as age=30,50 or born=1980-01-01.

    >>> bands_of(["age=30,50", "born=1980-01-01"], ["age", "born"])
    {'age': [30.0, 50.0], 'born': ['1980-01-01']}
    """
    bands: dict[Hashable, list[Any]] = {}
    for word in words:
        name, equals, edges = word.rpartition("=")
        if not equals or not split(edges):
            raise ParameterError(f"--bands takes column=edge,edge such as age=30,50, got {word!r}.")
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise ParameterError(
                f"--bands names {name!r}, by which nothing is grouped.{hint} Columns: {listed(columns)}."
            )
        try:
            bands[name] = [float(edge) for edge in split(edges)]
        except ValueError:
            bands[name] = list(split(edges))
    return bands


def ends_of(word: str) -> dict[str, float]:
    """Return the ends of a range from words such as 200,300 or 200, or ,300.

    >>> ends_of("200,"), ends_of("-1,2.5")
    ({'low': 200.0}, {'low': -1.0, 'high': 2.5})
    """
    low, comma, high = word.partition(",")
    try:
        ends = {name: float(end) for name, end in (("low", low), ("high", high)) if end.strip()}
    except ValueError:
        ends = {}
    if not comma or not ends:
        raise ParameterError(f"--between takes two numbers such as 200,300 or one of them, 200, or ,300, got {word!r}.")
    return ends


def label_of(word: str, classes: Iterable[Any], option: str) -> Any:
    """Return the model's own label that is written like this."""
    written = {str(label): label for label in classes}
    if word not in written:
        raise ParameterError(f"{option} must be among the model's labels {listed(written)}, got {word!r}.")
    return written[word]


def same_label(value: Any, known: dict[str, Any]) -> Any:
    """Return the model's own label for a true one that is written like it, or NaN; `known` has them by their text.

    >>> same_label(1.0, {"0": 0, "1": 1}), same_label("yes", {"0": 0})
    (1, nan)
    """
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return known.get(str(value), known.get(text, float("nan")))


def labels_of(words: Iterable[str], classes: Iterable[Any], option: str) -> list[Any]:
    """Return the labels that words name, which may be joined with commas; a label may hold a comma itself."""
    classes, whole = list(classes), ",".join(words)
    return [label_of(word, classes, option) for word in ([whole] if whole in map(str, classes) else split(whole))]


def numbered(words: str, numbers: Iterable[int]) -> list[int]:
    """Return the positions of rows from words such as 3,17,20-29 or all; `numbers` are the rows' own.

    >>> numbered("3,5-7", range(10)), numbered("3-6", [1, 3, 6])
    ([3, 5, 6, 7], [1, 2])
    """
    place_of = {int(number): place for place, number in enumerate(numbers)}
    if words.strip() == "all":
        return list(place_of.values())
    return [place for word in words.split(",") for place in _span(word.strip(), place_of, words)]


def _span(word: str, place_of: dict[int, int], words: str) -> list[int]:
    """Return the positions of one number, or of those from a first to a last that are there."""
    first, dash, last = word.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
        raise ParameterError(f"--rows takes numbers such as 3,17 or 20-29, or 'all', got {words!r}.")
    low, high, highest = int(first), int(last or first), max(place_of, default=-1)
    found = [place_of[number] for number in range(low, min(high, highest) + 1) if number in place_of]
    if high > highest or not found:
        fault = "was left out" if 0 <= high < highest else "is not in the table"
        raise RowsError(f"--rows names {high}, which {fault}: rows are 0 to {highest}.")
    return found


def named(words: Iterable[str], names: Iterable[Any]) -> list[int]:
    """Return the positions of rows by their name, as it is written in the file.

    >>> named(["P5,P9", "P5"], ["P9", "P5", "P5"])
    [1, 2, 0, 1, 2]
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(str(name), []).append(place)
    chosen: list[int] = []
    for word in split(",".join(words)):
        if word not in places:
            raise RowsError(f"--ids names {word!r}, but no row has that name.{did_you_mean(word, places)}")
        chosen += places[word]
    return chosen


def split(word: str) -> list[str]:
    """Return the parts of a word between its commas, without blanks and empty ones."""
    return [part.strip() for part in word.split(",") if part.strip()]
