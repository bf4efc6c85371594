"""What an exception says, whatever class of a caller's own it is of: its message may be endless, empty or raise itself.

exception  ->  message_of, error_words  ->  text for one sentence
"""

MOST = 500  # characters of a message


def message_of(error: BaseException) -> str:
    """Return the message of an exception, cut off where it is long; the name of its class where it has none.

    >>> message_of(KeyError("dose")), message_of(StopIteration())
    ("'dose'", 'StopIteration')
    """
    try:
        text = str(error)
    except Exception as own:
        text = f"{type(error).__name__}, whose message cannot be read ({type(own).__name__})"
    return (text if len(text) <= MOST else f"{text[:MOST]}...") or type(error).__name__


def error_words(error: BaseException) -> str:
    """Return the class and the message of an exception.

    >>> error_words(ValueError("no dose")), error_words(StopIteration())
    ('ValueError: no dose', 'StopIteration')
    """
    name, message = type(error).__name__, message_of(error)
    return message if message.startswith(name) else f"{name}: {message}"
