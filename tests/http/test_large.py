"""An image far larger than the arenas goes through in a bounded amount of memory."""
import io
import re
import time

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageStat

import imagefiles
import measure
import oracle
from pixels import smooth
from service import Process, meanwhile, sanitized

SIDE, SMALLER = 12000, 2500
ARENA = 16 << 20
SPOOL = 64 << 20
# Maximum of all processes together beside one job's two arenas: a body and an answer that are just
# not spooled, codec workers with rows of libvips, a device worker with PoCL and its compiler.
CONSTANT = 400 << 20
# Maximum of a large image beyond a small one, beside the arenas: less than any that is kept whole.
SLACK = 64 << 20
# By a kernel that is there: a compiler that has been used stays in memory (PoCL's takes 120 MB).
FILTER = "/v1/filters/gaussian?sigma=2&variant=general"
GAUSSIAN = [("gaussian", {"sigma": 2.0})]


class Memory:
    """Samples the memory of all processes: their shares of pages that are of no file, and each
    memory file that one has open, once. Spooled bodies and answers are files on disk."""

    def __init__(self, service):
        self.service, self.peak, self.samples, self.parts = service, 0, 0, {}

    def sample(self):
        parts, files = {}, {}
        for process in self.service.processes():
            parts[f"{process.name}[{process.pid}]"] = measure.memory(process, "Pss_Anon")
            files.update(memory_files(process))
        parts["shared memory"] = sum(files.values())
        self.samples += 1
        if sum(parts.values()) > self.peak:
            self.peak, self.parts = sum(parts.values()), parts

    def within(self, limit):
        sizes = ", ".join(f"{name} {size >> 20}" for name, size in sorted(self.parts.items()))
        assert sanitized() or self.peak <= limit, f"{self.peak >> 20} MB: {sizes}"


def memory_files(process):
    """Returns {inode: bytes} of the memory files that a process has open."""
    return {status.st_ino: status.st_blocks * 512 for name, status in process.files.values()
            if name.startswith("/memfd:")}


@pytest.fixture(scope="module")
def large(launch):
    with launch("--codecs", "2", "--max-body", "1G", "--arena-size", str(ARENA), "--spool-size",
                str(SPOOL)) as service:
        yield service
        assert service.restarts() == 0


def measured(service, target, body):
    memory = Memory(service)

    def sample():
        memory.sample()
        time.sleep(0.2)  # a sample takes 0.03 s of a processor
    with meanwhile(sample):
        answer = service.post(target, body, timeout=280)
    memory.sample()
    assert answer.status == 200, answer
    assert memory.samples >= 2
    assert ARENA / 2 < memory.parts["shared memory"] < memory.peak - ARENA, "it sees both kinds"
    return answer, memory


@pytest.fixture(scope="module")
def least(large):
    """The most that all processes take for a small image, but for its body and answer."""
    body = jpeg(SMALLER)
    large.post(FILTER, body)
    answer, memory = measured(large, FILTER, body)
    memory.within(2 * ARENA + CONSTANT)
    return memory.peak - len(body) - len(answer.body)


@pytest.fixture
def bounded(large, least):
    """Memory grows with the image only by the arenas and, if kept, the body and the answer."""
    def post(target, body, kept=False):
        answer, memory = measured(large, target, body)
        memory.within(least + kept * (len(body) + len(answer.body)) + 2 * ARENA + SLACK)
        return answer
    return post


def jpeg(side):
    """Returns a colour photograph's like: waves with a little grain, in blocks that repeat."""
    grain = np.random.default_rng(1).integers(0, 16, (1000, 1000, 3), np.uint8)
    block = smooth(1000, 1000, 3) + grain
    pixels = np.tile(block, (-(-side // 1000), -(-side // 1000), 1))[:side, :side]
    return imagefiles.written(imagefiles.pil(pixels), "JPEG", quality=85)


def texture(y0, y1):
    """Returns rows of an endless gray picture, each told apart from its neighbours by a byte."""
    y, x = np.ogrid[y0:y1, 0:SIDE]
    x, y, x8, y4 = ((n & 255).astype(np.uint8) for n in (x * 7, y * 13, x >> 3, (y >> 2) * 5))
    return ((x + y) ^ x8 ^ y4)[:, :, None]


def pgm():
    """144 million bytes, which are spooled."""
    return f"P5\n{SIDE} {SIDE}\n255\n".encode() + texture(0, SIDE).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("x, y, width, height", [(0, 0, SIDE, SIDE), (6001, SIDE - 900, 1201, 900)])
def test_large_jpeg(bounded, monkeypatch, x, y, width, height):
    """JPEG in and out; of its end, too, above which rows are decoded and dropped."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    body = jpeg(SIDE)
    answer = bounded(f"{FILTER}&roi={x},{y},{width},{height}", body, kept=True)
    assert answer.kind == (width, height, 3, "u8")
    _, found = imagefiles.read_pil(answer.body)
    expected = Image.open(io.BytesIO(body)).crop((x, y, x + width, y + height))
    off = ImageStat.Stat(ImageChops.difference(found, expected)).mean
    assert max(off) < 6, "another picture came back"


@pytest.mark.slow
def test_large_exact(bounded):
    """Bytes in and out are spooled: windows all over the image hold the right values."""
    pixels = bounded(f"{FILTER}&format=raw", pgm()).pixels
    assert pixels.shape == (SIDE, SIDE, 1)
    for top in [0, SIDE - 40] + list(range(37, SIDE - 40, 1699)):
        y0, y1 = max(top - 6, 0), min(top + 46, SIDE)
        expected = oracle.filtered(texture(y0, y1), GAUSSIAN)
        rows = np.s_[top - y0:top - y0 + 40]
        part = oracle.Estimate(expected.value[rows], expected.errors[:, rows])
        oracle.check(pixels[top:top + 40], part)


@pytest.mark.slow
def test_large_target(bounded):
    """The image is decoded twice at once, and neither decoder keeps the rows that it skips."""
    x, y, width, height = 4001, 10003, 7999, 1501
    left, top = 3, 5
    pixels = bounded(f"{FILTER}&format=raw&roi={x},{y},{width},{height}&target={left},{top}",
                     pgm()).pixels.copy()
    part = texture(y, y + height)[:, x:x + width]
    inside = np.s_[top:top + height, left:left + width]
    oracle.check(pixels[inside], oracle.filtered(part, GAUSSIAN))
    whole = texture(0, SIDE)
    pixels[inside] = whole[inside]
    assert np.array_equal(pixels, whole), "the rest is not kept"


def test_nothing_is_kept(large):
    front = Process(large.process.pid)
    assert not [name for name in front.descriptors.values()
                if re.match(r"(?!/memfd:).*\(deleted\)", name)]
    assert sum(memory_files(front).values()) <= 2 * 2 * ARENA + (8 << 20)
