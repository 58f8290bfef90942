"""2,000 fixed files of ./dev corpus: generated ones, so they are the same on every host and need no
network, with the mutations of real ones; and the mutations themselves."""
import hashlib
import random

import numpy as np
import pytest

import corpus
from imagefiles import pil, several, write_pnm, write_png, written
from mutations import MUTATIONS, sizes
from pixels import random_pixels, smooth
from test_damaged import KINDS
from test_damaged import written as by_kind

POSTS = 4600  # two services, JPEGs by two lanes


def generated():
    """Returns files of all formats, and of several kinds of some."""
    picture, frames = smooth(96, 64, 3), [pil(random_pixels(seed, 48, 32, 3, "u8")) for seed in range(3)]
    return [by_kind(picture, kind) for kind in KINDS if kind != "PPM"] + [  # libvips writes the time into that
        write_pnm(picture),
        written(pil(picture), "bmp"), written(pil(picture).quantize(16), "bmp"), written(pil(picture).convert("CMYK"), "jpeg"),
        written(pil(picture).quantize(9), "png"), written(pil(picture).convert("1"), "tiff", compression="group4"),
        write_png(random_pixels(1, 40, 30, 4, "u16", alpha=True)), write_pnm(random_pixels(2, 40, 30, 1, "u16")),
        write_pnm(smooth(40, 30, 3, "f32").astype(np.float32)), several(frames, "gif"), several(frames, "webp"),
        several(frames, "tiff"), several(frames, "png")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """{digest: path}, as those of packages are."""
    place, found = tmp_path_factory.mktemp("files"), {}
    for data in generated():
        digest = hashlib.sha256(data).hexdigest()[:16]
        found[digest] = place / digest
        found[digest].write_bytes(data)
    return found


def test_mutations(files):
    """A name makes the same file each time, and another one than what it is made from."""
    every = corpus.Corpus(files)
    for number in range(1, 9):
        for name in every.names(number, 1):
            assert every.body(name) == every.body(name)
    changed = [every.body(name) != files[name[:16]].read_bytes() for name in every.names(1, 1)]
    assert sum(changed) > 0.9 * len(changed)  # a size may have been rewritten as it was


@pytest.mark.parametrize("format", ["png", "jpeg", "gif", "bmp", "webp", "tiff", "ppm"])
def test_sizes(service, format):
    """The rewritten size is the one that the service reads."""
    data = written(pil(smooth(40, 30, 3)), format)
    assert len(sizes(data)) >= 2
    rng, told = random.Random(1), set()
    for _ in range(12):
        answer = service.identity(MUTATIONS["sizes"](data, rng), format="raw")
        told.add(answer.headers["X-Image"] if answer.status == 200 else answer.problem["detail"])
    assert len(told) > 2, told


@pytest.mark.slow
def test_fixed_files(launch, files):
    ledger = corpus.Ledger()
    with corpus.pair(launch) as services:
        for row in corpus.run(services, corpus.Corpus(files), POSTS, 1, ledger):
            print(row)
    assert not ledger.finds
    assert ledger.rows["jpeg"]["by device"]
    assert sum(row["whole"] + row["mutated"] for row in ledger.rows.values()) >= 2000
