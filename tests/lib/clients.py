"""Clients that ask without a pause while a test does something to the service."""
import threading
import time

import oracle
from service import poll


class Clients:
    """They post the images in turn and check every answer: a fresh connection each request, no
    second try. `problems` has what went wrong, `slowest` the seconds of the longest request."""

    def __init__(self, client, images, filters, count):
        self.client, self.images, self.filters = client, images, filters
        self.right = [oracle.filtered(image, filters) for image in images]
        self.done, self.problems, self.slowest = 0, [], 0
        self.end = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]

    def run(self, turn):
        while not self.end.is_set():
            i = turn % len(self.images)
            turn += 1
            began = time.monotonic()
            try:
                answer = self.client.filter(self.images[i], self.filters)
                oracle.check(answer.pixels, self.right[i])
            except Exception as error:  # whatever a client meets is a request that failed
                self.problems.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.done += 1

    def more(self, count):
        """Waits until `count` more requests have been answered."""
        goal = self.done + count
        poll(lambda: self.done >= goal, 120, "answers")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        for thread in self.threads:
            thread.join()
