"""A callback that fails the process in the middle of a fit."""


class Crash:
    """Fail at the end of an iteration, the second by default."""

    def __init__(self, at=2):
        self.at, self.count = at, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration":
            self.count += 1
            if self.count == self.at:
                raise MemoryError
