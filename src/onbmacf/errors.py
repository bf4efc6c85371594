"""What can go wrong, as types. Every message names what was found and what is allowed.

OnbmacfError
+- ParameterError   an argument of ours            (also ValueError)
+- TableError       the table given to fit         (also ValueError)
+- RowsError        the rows given to explain      (also ValueError)
+- ModelError       what the model did             (also RuntimeError)
+- NotEnoughMemoryError  before work that would not fit  (also MemoryError)
+- StoreError       a file on disk                 (also OSError)
+- EmptyFileError, ForeignFileError, TruncatedFileError, CorruptFileError, NewerVersionError
"""


class OnbmacfError(Exception):
    """Base of every error raised on purpose by this package."""


class ParameterError(OnbmacfError, ValueError):
    """An argument is outside what is allowed."""


class TableError(OnbmacfError, ValueError):
    """The table given to ``fit`` cannot be used."""


class RowsError(OnbmacfError, ValueError):
    """The rows given to ``explain`` do not fit the table seen in ``fit``."""


class ModelError(OnbmacfError, RuntimeError):
    """The model answered with something that is not labels, or did not answer."""


class NotEnoughMemoryError(OnbmacfError, MemoryError):
    """What is asked would not fit into the memory there is."""


class StoreError(OnbmacfError, OSError):
    """A file could not be written or read back."""


class EmptyFileError(StoreError):
    """The file has no bytes."""


class ForeignFileError(StoreError):
    """The file was not written by this package."""


class TruncatedFileError(StoreError):
    """The file ends before its content does."""


class CorruptFileError(StoreError):
    """The file's content does not match its digests."""


class NewerVersionError(StoreError):
    """The file was written by a later version of this package."""


class OnbmacfWarning(UserWarning):
    """Something to know; the work goes on."""
