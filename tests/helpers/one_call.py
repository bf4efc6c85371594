"""A model that does something in one of its calls, counted from when it is told."""


class InOneCall:
    """Labels rows by a function; `do` is called in the call in which `calls_left` comes to 0."""

    def __init__(self, label, do):
        self.label, self.do, self.calls_left = label, do, None

    def predict(self, rows):
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left == 0:
                self.do()
        return self.label(rows).astype(int)
