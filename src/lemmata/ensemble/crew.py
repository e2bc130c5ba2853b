"""A crew: threads that stay for a whole fit, so that a step of a tenth of a millisecond can be shared.

`threads.run` makes its threads anew, which costs as much as such a step. A crew is one call of it: the caller's thread leads,
the others wait for jobs. A job hands out tasks and takes back what came of them, both under one lock, and says when it is
finished; what it hands out may depend on who is first, so a job must see to it that its result does not.
"""

import threading
from collections import deque

from lemmata.core import threads


class Each:
    """The job of calling a function on every one of some tasks, in any order."""

    def __init__(self, work, tasks):
        self.work, self.waiting = work, deque(tasks)
        self.left = len(self.waiting)

    @property
    def finished(self):
        """Whether every task is done."""
        return self.left == 0

    def take(self):
        """Hand out the next task, or None."""
        return (self.work, self.waiting.popleft()) if self.waiting else None

    def give(self, result):
        """Take note that a task is done."""
        self.left -= 1


class Crew:
    """Threads that wait for jobs.

    Examples
    --------
    >>> done = []
    >>> crew = Crew(2)
    >>> crew.led(lambda: crew.each(done.append, range(4)))
    >>> sorted(done)
    [0, 1, 2, 3]
    """

    def __init__(self, n_threads):
        self.n_threads = n_threads
        self._turn = threading.Condition()
        self._job, self._running, self._closed = None, 0, False
        self._error = None

    def led(self, lead):
        """Call `lead` on this thread while the others help with its jobs; return what it returns."""
        if self.n_threads == 1:
            return lead()
        caller, results = threading.get_ident(), []

        def work(_):
            if threading.get_ident() != caller:
                return self._help()
            try:
                results.append(lead())
            finally:
                with self._turn:
                    self._closed = True
                    self._turn.notify_all()

        threads.run(work, range(self.n_threads), self.n_threads)
        return results[0]

    def each(self, work, tasks):
        """Call a function on every task and wait for all of them."""
        self.run(Each(work, tasks))

    def run(self, job):
        """Do a job: until it is finished and nobody works on a task of it."""
        with self._turn:
            self._job = job
            if self.n_threads > 1:
                self._turn.notify_all()
            try:
                self._work(job)
            finally:
                self._job = None
                while self._running:  # tasks write to shared arrays: not even an interrupt may leave them behind
                    self._turn.wait()
            if self._error is not None:
                error, self._error = self._error, None
                raise error

    def _help(self):
        with self._turn:
            while not self._closed:
                self._work(self._job)
                if not self._closed:
                    self._turn.wait()

    def _work(self, job):
        """Take tasks until the job is finished, with the lock held but for the work itself."""
        while job is not None and self._job is job and not job.finished and self._error is None:
            task = job.take()
            if task is None:
                self._turn.wait()
                continue
            self._running += 1
            self._turn.release()
            try:
                function, *arguments = task
                result, error = function(*arguments), None
            except BaseException as problem:  # it must reach the leader
                result, error = None, problem
            finally:
                self._turn.acquire()
                self._running -= 1
            if error is None:
                job.give(result)
            else:
                self._error = error
            if self.n_threads > 1:
                self._turn.notify_all()
