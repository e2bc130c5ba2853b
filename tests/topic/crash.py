"""A callback that fails the process in the middle of a fit."""


class Crash:
    """Fail at the end of the fifteenth iteration."""

    count = 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration":
            self.count += 1
            if self.count == 15:
                raise MemoryError
