"""Clients that ask without a pause while a test does something to the service."""
import collections
import threading
import time

import oracle
from service import poll


class Load:
    """They make the requests, functions that return an answer, in turn. Each answer must have the
    bytes of the first to its request, or be among `honest`: {(status, problem)}. `problems` has
    what went wrong, `answers` all others: (when it was asked for, and answered, its status)."""

    def __init__(self, requests, count, honest=(), right=None):
        self.requests, self.honest = requests, honest
        self.right = [request().body for request in requests] if right is None else right
        self.answers, self.problems, self.refused = [], [], collections.Counter()
        self.end = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]

    def run(self, turn):
        while not self.end.is_set():
            turn = (turn + 1) % len(self.requests)
            began = time.monotonic()
            try:
                answer = self.requests[turn]()
                if answer.status != 200 and self.honest:
                    self.refuse(answer)
                else:
                    self.check(answer, self.right[turn])
                self.answers.append((began, time.monotonic(), answer.status))
            except Exception as error:  # whatever a client meets is a request that failed
                self.problems.append(repr(error))

    def check(self, answer, right):
        assert answer.status == 200, answer
        assert answer.body == right, "wrong pixels"

    def refuse(self, answer):
        kind = answer.status, answer.problem["type"].split("/")[-1]
        assert kind in self.honest, answer
        assert answer.status != 503 or int(answer.headers["Retry-After"]) >= 1, answer
        self.refused[kind] += 1
        time.sleep(0.02)  # a client that is told to come again does not come at once

    @property
    def done(self):
        return len(self.answers) + len(self.problems)

    @property
    def served(self):
        return sum(status == 200 for *_, status in self.answers)

    @property
    def slowest(self):
        """The seconds of the longest request."""
        return max(answered - began for began, answered, _ in self.answers)

    def more(self, count):
        """Waits until `count` more requests have been answered."""
        goal = self.done + count
        poll(lambda: self.done >= goal, 120, "answers")

    def until(self, condition, what, interval=None):
        """Polls while nothing goes wrong."""
        def condition_or_problem():
            assert not self.problems, self.problems[:3]
            return condition()
        return poll(condition_or_problem, what=what, interval=interval)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stop()
        assert kind or not self.problems, self.problems[:3]

    def stop(self):
        self.end.set()
        for thread in self.threads:
            thread.join()


class Clients(Load):
    """They post images in turn, and check the pixels of answers. The test judges `problems`."""

    def __init__(self, client, images, filters, count):
        super().__init__([lambda image=image: client.filter(image, filters) for image in images],
                         count, right=[oracle.filtered(image, filters) for image in images])

    def check(self, answer, right):
        oracle.check(answer.pixels, right)

    def __exit__(self, *_):
        self.stop()
