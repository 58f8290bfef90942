"""Requests that something happens to in the middle, by the same kernels, to compare bytes."""
import concurrent.futures
import functools

import imagefiles
import oracle
from pixels import random_pixels
from service import PATIENCE, poll

# Some seconds of work in many tiles.
large = functools.cache(lambda: random_pixels(1, 4000, 3000, 3, "u8"))
SLOW = [("gaussian", {"sigma": 20.0}), ("box", {"size": 101}), ("gaussian", {"sigma": 20.0}),
        ("sobel", {})]
SMALL = random_pixels(2, 61, 47, 3, "u8")
PNG = imagefiles.write_png(SMALL)


def works(service):
    answer = service.post("/v1/filters/gaussian?sigma=1.5&format=raw", PNG)
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(SMALL, [("gaussian", {"sigma": 1.5})]))


class InFlight:
    """A large request on a thread of its own, begun when a device works on one of its tiles."""

    def __init__(self, service, pixels=None, filters=SLOW):
        pixels = large() if pixels is None else pixels
        self.service, self.size, self.answer = service, pixels.nbytes, None
        pool = concurrent.futures.ThreadPoolExecutor(1)

        def begun():
            if not self.answer or self.done:  # whoever polls was held up
                self.before = service.total("convolved_tiles_total")
                self.answer = pool.submit(service.filter, pixels, filters, variant="general")
            metrics = service.metrics()
            return (metrics.total("convolved_tiles_in_flight") >= 1
                    and metrics.total("convolved_tiles_total") > self.before)
        poll(begun, 60, "a tile in flight", 0.005)

    @property
    def done(self):
        return self.answer.done()

    @property
    def codec(self):
        """The codec worker that has the job: the one that has its body open."""
        return next(p for p in self.service.workers("codec") if self.size in p.open_sizes)

    def result(self):
        return self.answer.result(PATIENCE)

    def gives(self, body):
        """Asserts that this is the result."""
        answer = self.result()
        assert (answer.status, answer.body) == (200, body), answer
