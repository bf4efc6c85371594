"""What can go wrong, as types. Every message names what was found and what is allowed.

OnbmacfError
+- ParameterError   an argument of ours            (also ValueError)
+- TableError       the table given to fit         (also ValueError)
+- RowsError        the rows given to explain      (also ValueError)
+- ModelError       what the model did             (also RuntimeError)
+- NotEnoughMemoryError  before work that would not fit  (also MemoryError)
+- StoreError       a file on disk                 (also OSError)
+- EmptyFileError, ForeignFileError, TruncatedFileError, CorruptFileError, InvalidFileError, NewerVersionError
"""


class OnbmacfError(Exception):
    """Base of every error raised on purpose by this package.

    Examples
    --------
    >>> from onbmacf import Rules
    >>> try:
    ...     Rules(max_changes=0)
    ... except OnbmacfError as error:
    ...     print(type(error).__name__)
    ParameterError

    """


class ParameterError(OnbmacfError, ValueError):
    """An argument is outside what is allowed. The message says which values are.

    Examples
    --------
    >>> from onbmacf import Feature
    >>> Feature("age", "number")
    Traceback (most recent call last):
    onbmacf.errors.ParameterError: kind of 'age' must be one of 'continuous', 'integer', ...

    """


class TableError(OnbmacfError, ValueError):
    """The table given to ``fit`` or read from a file cannot be used. The message names the column.

    Examples
    --------
    >>> import pandas as pd
    >>> from onbmacf import Schema
    >>> Schema.infer(pd.DataFrame({"price": ["3", "4"]}))
    Traceback (most recent call last):
    onbmacf.errors.TableError: column 'price' holds numbers stored as text, e.g. '3'. Give them as numbers, ...

    """


class RowsError(OnbmacfError, ValueError):
    """The rows given to ``explain`` do not have the columns of the table given to ``fit``.

    A single row that cannot be explained is no error: its status is ``invalid_row``, with the reason.
    """


class ModelError(OnbmacfError, RuntimeError):
    """The model answered with something other than labels or probabilities, did not answer, or is another model."""


class NotEnoughMemoryError(OnbmacfError, MemoryError):
    """The work would not fit into the memory there is. It is raised before the work begins."""


class StoreError(OnbmacfError, OSError):
    """A file (a saved map, a report, a table of results) could not be written or read back."""


class EmptyFileError(StoreError):
    """The file has no bytes."""


class ForeignFileError(StoreError):
    """The file was not written by this package."""


class TruncatedFileError(StoreError):
    """The file ends before its content does: the copy or the download was cut off."""


class CorruptFileError(StoreError):
    """The file's content does not match the digests it carries: some bytes have changed."""


class InvalidFileError(StoreError):
    """The file is whole, but what it holds is no map that ``fit`` makes: its parts contradict each other."""


class NewerVersionError(StoreError):
    """The file was written by a later version of this package: update it."""


class OnbmacfWarning(UserWarning):
    """Something to know about the table, the model or the rows; the work goes on.

    ``explainer.warnings_`` and ``answers.warnings`` keep the messages; how long ``fit`` will take is only said.
    """
