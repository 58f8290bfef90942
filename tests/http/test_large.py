"""An image far larger than the arenas goes through in a bounded amount of memory."""
import os
import threading

import numpy as np
import pytest
from PIL import Image

import oracle
from service import Process, sanitized

SIDE, SMALLER = 12000, 2500
ARENA = 16 << 20
SPOOL = 64 << 20
# Maximum of all processes together beside one job's two arenas: the front, two codec workers with
# libvips and its decoders' and encoders' rows, a device worker with the OpenCL platform (PoCL
# brings a compiler), and one body and one answer that are just not spooled.
CONSTANT = 400 << 20
# Maximum of a large image beyond a small one, beside the arenas: less than any that is kept whole.
SLACK = 64 << 20
# By a kernel that is there: a compiler that has been used stays in memory (PoCL's takes 120 MB), so
# before and after it nothing could be compared.
FILTER = "/v1/filters/gaussian?sigma=2&variant=general"


class Memory(threading.Thread):
    """Samples the memory of the service's processes: their pages by their shares, and every memory
    file that one of them has open, mapped or not, once. Spooled bodies and answers are files on
    disk: the pages that a mapping of them shows are the kernel's to drop."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.peak, self.samples, self.parts = service, 0, 0, {}
        self.high_water = {}
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            self.sample()
            self.ended.wait(0.2)  # a sample takes 0.03 s of a processor

    def sample(self):
        parts, files = {}, {}
        for process in self.service.processes():
            label = f"{process.name}[{process.pid}]"
            parts[label] = self.resident(process)
            files.update(memory_files(process.pid))
            for line in process.read("status").splitlines():
                if line.startswith("VmHWM"):
                    self.high_water[label] = int(line.split()[1]) * 1024
        parts["shared memory"] = sum(files.values())
        total = sum(parts.values())
        self.samples += 1
        if total > self.peak:
            self.peak, self.parts = total, parts

    def resident(self, process):
        """Returns bytes of pages that are neither of memory files nor of files in the cache
        directory."""
        total, counted = 0, True
        for line in process.read("smaps").splitlines():
            word, rest = line.split(" ", 1)
            if not word.endswith(":"):  # the head of a mapping: addresses, …, path
                counted = "/memfd:" not in rest and str(self.service.cache) not in rest
            elif word == "Pss:" and counted:
                total += int(rest.split()[0]) * 1024
        return total

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        self.sample()

    def report(self, title):
        def megabytes(sizes):
            return ", ".join(f"{name} {size >> 20}" for name, size in sorted(sizes.items()))
        return (f"\n  {title}: peak {self.peak >> 20} MB of {self.samples} samples ("
                f"{megabytes(self.parts)})\n  VmHWM, shared pages counted in each: "
                f"{megabytes(self.high_water)}")


def memory_files(pid):
    """Returns {inode: bytes} of the memory files that a process has open."""
    found = {}
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return found
    for name in names:
        try:
            if os.readlink(f"{directory}/{name}").startswith("/memfd:"):
                status = os.stat(f"{directory}/{name}")
                found[status.st_ino] = status.st_blocks * 512
        except OSError:
            continue
    return found


def texture(y0, y1, width):
    """Returns rows y0 to y1 of an endless gray picture, which a byte tells apart from its
    neighbours."""
    y, x = np.ogrid[y0:y1, 0:width]
    x, y, x8, y4 = ((n & 255).astype(np.uint8) for n in (x * 7, y * 13, x >> 3, (y >> 2) * 5))
    return (x + y) ^ x8 ^ y4


@pytest.fixture(scope="module")
def large(launch):
    with launch("--codecs", "2", "--max-body", "1G", "--arena-size", str(ARENA), "--spool-size",
                str(SPOOL)) as service:
        yield service
        assert service.restarts() == 0


@pytest.fixture(scope="module")
def least(large, tmp_path_factory):
    """The most that all processes take for a small image, but for its body and answer."""
    body = jpeg(SMALLER, tmp_path_factory.mktemp("small") / "small.jpg")
    large.post(FILTER, body)
    answer, memory = measured(large, f"JPEG {SMALLER}×{SMALLER}", FILTER, body)
    assert sanitized() or memory.peak <= 2 * ARENA + CONSTANT, memory.report("too much")
    return memory.peak - len(body) - len(answer.body)


def measured(service, title, target, body):
    with Memory(service) as memory:
        answer = service.post(target, body, timeout=280)
    assert answer.status == 200, answer
    print(memory.report(title))
    assert memory.samples >= 2
    return answer, memory


def bounded(memory, least, kept=b""):
    """Memory does not grow with the image, except for the kept parts of body and answer, and the
    arenas."""
    assert sanitized() or memory.peak <= least + len(kept) + 2 * ARENA + SLACK, memory.report("too much")


def jpeg(side, path):
    """Returns a colour photograph's like: waves with a little grain, in blocks that repeat."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:1000, 0:1000]
    block = np.stack([128 + 90 * np.sin(x / (31 + b)) * np.cos(y / (47 - b)) for b in range(3)], 2)
    block = np.clip(block + rng.normal(0, 4, block.shape), 0, 255).astype(np.uint8)
    image = Image.new("RGB", (side, side))
    tile = Image.fromarray(block)
    for top in range(0, side, 1000):
        for left in range(0, side, 1000):
            image.paste(tile, (left, top))
    image.save(path, "JPEG", quality=85)
    return path.read_bytes()


def test_large_jpeg(large, least, tmp_path):
    """JPEG in and out."""
    body = jpeg(SIDE, tmp_path / "large.jpg")
    answer, memory = measured(large, f"JPEG {SIDE}×{SIDE}", FILTER, body)
    assert answer.kind == (SIDE, SIDE, 3, "u8")
    bounded(memory, least, body + answer.body)
    (tmp_path / "answer.jpg").write_bytes(answer.body)
    Image.MAX_IMAGE_PIXELS = None
    picture = Image.open(tmp_path / "answer.jpg")
    assert picture.size == (SIDE, SIDE)
    picture.draft("RGB", (SIDE // 8, SIDE // 8))
    coarse = np.asarray(picture).astype(float)
    reference = np.asarray(Image.open(tmp_path / "large.jpg").resize(
        coarse.shape[1::-1], Image.BOX, reducing_gap=1.0)).astype(float)
    assert np.abs(coarse - reference).mean() < 6, "another picture came back"


def test_large_exact(large, least):
    """144 million bytes in and out, both spooled: windows all over the image hold the right values."""
    body = bytearray(f"P5\n{SIDE} {SIDE}\n255\n".encode())
    for y in range(0, SIDE, 500):
        body += texture(y, y + 500, SIDE).tobytes()
    answer, memory = measured(large, f"PGM to raw {SIDE}×{SIDE}", f"{FILTER}&format=raw",
                              bytes(body))
    bounded(memory, least)
    pixels = answer.pixels[:, :, 0]
    assert pixels.shape == (SIDE, SIDE)
    for top in [0, SIDE - 40] + list(range(37, SIDE - 40, 1699)):
        y0, y1 = max(top - 6, 0), min(top + 46, SIDE)
        rows = texture(y0, y1, SIDE)[:, :, None]
        expected = oracle.filtered(rows, [("gaussian", {"sigma": 2.0})])
        first = top - y0
        part = oracle.Estimate(*(a[first:first + 40] for a in (expected.value, expected.hard,
                                                               expected.tight)))
        oracle.check(pixels[top:top + 40, :, None], part)


def test_large_target(large, least):
    """A part from the bottom placed at the top: the image is decoded twice at once, and neither
    decoder keeps rows, though one first reads past most of them."""
    x, y, width, height = 4001, 10003, 7999, 1501
    left, top = 3, 5
    body = bytearray(f"P5\n{SIDE} {SIDE}\n255\n".encode())
    for row in range(0, SIDE, 500):
        body += texture(row, row + 500, SIDE).tobytes()
    answer, memory = measured(large, f"part of a PGM moved {SIDE}×{SIDE}", FILTER +
                              f"&format=raw&roi={x},{y},{width},{height}&target={left},{top}",
                              bytes(body))
    bounded(memory, least)
    pixels = answer.pixels[:, :, 0]
    part = texture(y, y + height, SIDE)[:, x:x + width, None]
    expected = oracle.filtered(part, [("gaussian", {"sigma": 2.0})])
    oracle.check(pixels[top:top + height, left:left + width, None], expected)
    for row in range(0, SIDE, 500):
        same = pixels[row:row + 500] == texture(row, row + 500, SIDE)
        inside = np.zeros_like(same)
        inside[max(top - row, 0):max(top + height - row, 0), left:left + width] = True
        assert (same | inside).all(), "the rest is not kept"


def test_large_part(large, least, tmp_path):
    """The end of a JPEG: rows above it are decoded, and dropped."""
    side = 8000
    body = jpeg(side, tmp_path / "large.jpg")
    left, top = side // 2, side - 900
    roi = f"roi={left},{top},1201,900"
    answer, memory = measured(large, "part of a JPEG", f"{FILTER}&format=raw&{roi}", body)
    bounded(memory, least, body + answer.body)
    part = large.identity(body, roi=roi[4:], format="raw", variant="general").pixels
    Image.MAX_IMAGE_PIXELS = None
    picture = Image.open(tmp_path / "large.jpg").crop((left, top, left + 1201, top + 900))
    assert np.abs(np.asarray(picture).astype(int) - part).mean() < 2
    oracle.check(answer.pixels, oracle.filtered(part, [("gaussian", {"sigma": 2.0})]))


def test_nothing_is_kept(large):
    """Bodies and answers are gone when their requests are."""
    front = Process(large.process.pid)
    directory = f"/proc/{front.pid}/fd"
    spooled = [os.readlink(f"{directory}/{name}") for name in os.listdir(directory)]
    assert not [name for name in spooled if "(deleted)" in name and not name.startswith("/memfd:")]
    assert sum(memory_files(front.pid).values()) <= 2 * 2 * ARENA + (8 << 20)


def test_measures(large):
    """The measurement sees a process's memory: a memory file of its own, and its pages."""
    memory = Memory(large)
    memory.sample()
    files = sum(memory_files(large.process.pid).values())
    assert files <= memory.parts["shared memory"] < files + (1 << 20), \
        "the front has every memory file open, but what a device worker shares with its compiler"
    device = large.workers("device")[0]
    rss = int(device.read("status").split("RssAnon:")[1].split()[0]) * 1024
    assert memory.parts[f"{device.name}[{device.pid}]"] >= rss * 0.9
