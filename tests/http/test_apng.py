"""Animated PNGs, put together by hand: the parts that a frame leaves of the ones before, and
errors."""
import io
import pathlib
import struct
import subprocess
import tempfile

import numpy as np
import pytest
from PIL import Image

from imagefiles import PNG_SIGNATURE, png_chunk, png_chunks, read_png, write_png, written
from pixels import random_pixels
from service import tool

WIDTH, HEIGHT = 45, 33
NONE, BACKGROUND, PREVIOUS = range(3)
SOURCE, OVER = range(2)
# x, y, width, height, dispose, blend; the first is as large as the image
PLACES = [(0, 0, WIDTH, HEIGHT, NONE, SOURCE), (5, 3, 20, 11, PREVIOUS, OVER), (1, 1, 40, 30, NONE, OVER),
          (44, 32, 1, 1, BACKGROUND, SOURCE), (7, 9, 30, 20, BACKGROUND, OVER), (0, 0, 45, 5, NONE, SOURCE),
          (2, 2, 41, 29, PREVIOUS, SOURCE), (9, 0, 3, 33, NONE, OVER)]
OPAQUE = [place for place in PLACES if place[4] != BACKGROUND]


def control(number, place, delay=(1, 10)):
    x, y, width, height, dispose, blend = place
    return png_chunk(b"fcTL", struct.pack(">5I2H2B", number, width, height, x, y, *delay, dispose, blend))


def count(frames, plays=0):
    return png_chunk(b"acTL", struct.pack(">2I", frames, plays))


def animate(files, places, hidden=None, size=(WIDTH, HEIGHT)):
    """Frames are files of one kind; hidden: the image for readers that know of no frames."""
    chunks = list(png_chunks(hidden or files[0]))
    body = PNG_SIGNATURE + png_chunk(b"IHDR", struct.pack(">2I", *size) + chunks[0][1][8:]) + count(len(files))
    body += b"".join(png_chunk(name, data) for name, data in chunks[1:] if name in (b"PLTE", b"tRNS"))
    number = 0
    if hidden:
        body += b"".join(png_chunk(name, data) for name, data in chunks if name == b"IDAT")
    for i, (file, place) in enumerate(zip(files, places, strict=True)):
        body += control(number, place)
        number += 1
        data = b"".join(data for name, data in png_chunks(file) if name == b"IDAT")
        if not i and not hidden:
            body += png_chunk(b"IDAT", data[:40]) + png_chunk(b"IDAT", data[40:])
            continue
        for part in (data[:30], data[30:]):
            body += png_chunk(b"fdAT", struct.pack(">I", number) + part)
            number += 1
    return body + png_chunk(b"IEND", b"")


def pictures(places, bands, kind):
    return [random_pixels(seed, width, height, bands, kind, bands % 2 == 0)
            for seed, (_, _, width, height, _, _) in enumerate(places)]


def composed(frames, places, full):
    """Returns the visible part of each, in floats: colours, and alpha as a share."""
    canvas, seen = np.zeros((HEIGHT, WIDTH, frames[0].shape[2])), []
    for frame, (x, y, width, height, dispose, blend) in zip(frames, places, strict=True):
        kept = canvas.copy()
        area = canvas[y:y + height, x:x + width]
        above = frame / np.array([1] * (frame.shape[2] - 1) + [full])
        alpha, below = above[:, :, -1:], area[:, :, -1:] * (1 - above[:, :, -1:])
        if blend == SOURCE:
            area[:] = above
        else:
            colours = above[:, :, :-1] * alpha + area[:, :, :-1] * below
            area[:, :, :-1] = colours / np.where(alpha + below > 0, alpha + below, 1)
            area[:, :, -1:] = alpha + below
        seen.append(canvas * np.array([1] * (frame.shape[2] - 1) + [full]))
        if dispose == BACKGROUND:
            canvas[y:y + height, x:x + width] = 0
        elif dispose == PREVIOUS:
            canvas = kept
    return seen


def opaque(pixels):
    return np.concatenate([pixels, np.full_like(pixels[:, :, :1], np.iinfo(pixels.dtype).max)], axis=2)


@pytest.mark.parametrize("kind, bands, places", [
    ("u8", 4, PLACES), ("u16", 2, PLACES), ("u8", 3, PLACES), ("u16", 4, OPAQUE), ("u16", 3, OPAQUE), ("u8", 1, OPAQUE)])
def test_frames(service, kind, bands, places):
    """Alpha comes only where frames leave pixels out."""
    frames = pictures(places, bands, kind)
    full = np.iinfo(frames[0].dtype).max
    answer = service.identity(animate([write_png(frame) for frame in frames], places), pages="all", format="raw")
    assert answer.status == 200 and answer.headers["X-Pages"] == str(len(places)), answer
    alpha = bands % 2 == 0 or places is PLACES
    wanted = composed(frames if bands % 2 == 0 else [opaque(frame) for frame in frames], places, full)
    got = np.frombuffer(answer.body, frames[0].dtype).reshape(len(places), HEIGHT, WIDTH, -1).astype(float)
    assert got.shape[3] == bands + (alpha and bands % 2)
    for one, expected in zip(got, wanted, strict=True):
        expected = expected[:, :, :one.shape[2]]
        colours = expected[:, :, -1:] > 0.5 if alpha else True  # none where alpha is 0
        assert np.abs(one - expected * colours).max() <= 1.01
    page = service.identity(animate([write_png(frame) for frame in frames], places), page=5 % len(places), format="raw")
    assert page.body == got[5 % len(places)].astype(frames[0].dtype).tobytes()


def test_kinds_of_png(service):
    """Palettes, transparent colours, few bits and interlace."""
    picture = Image.fromarray(random_pixels(1, WIDTH, HEIGHT, 3, "u8")).quantize(14)
    for options in ({}, {"transparency": 3}, {"bits": 4, "transparency": bytes(range(0, 224, 16))}):
        files = [written(picture.crop(box), "PNG", **options) for box in ((0, 0, WIDTH, HEIGHT), (4, 4, 24, 30))]
        palette = {chunk for file in files for chunk in png_chunks(file) if chunk[0] == b"PLTE"}
        assert len(palette) == 1
        places = [PLACES[0], (3, 2, 20, 26, NONE, OVER)]
        got = service.identity(animate(files, places), page=1, format="raw").pixels
        frames = [np.asarray(Image.open(io.BytesIO(file)).convert("RGBA")) for file in files]
        wanted = composed(frames, places, 255)[1]
        wanted = wanted * (wanted[:, :, 3:] > 0.5) if options else wanted[:, :, :3]
        assert np.abs(got - wanted).max() <= 1.01, options
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in.png"), pathlib.Path(directory, "out.png")
        frame = random_pixels(7, 30, 20, 3, "u16")
        before.write_bytes(write_png(frame))
        subprocess.run([tool("vips"), "pngsave", before, after, "--interlace"], check=True)
        woven = after.read_bytes()
    got = service.identity(animate([woven, woven], [(0, 0, 30, 20, NONE, SOURCE)] * 2, size=(30, 20)), page=1, format="raw")
    assert np.array_equal(got.pixels, frame)


def test_hidden_picture(service):
    """The image without frames need not be one of them; the first frame may then leave pixels out."""
    hidden, small = random_pixels(1, WIDTH, HEIGHT, 3, "u8"), random_pixels(2, 9, 7, 3, "u8")
    body = animate([write_png(small), write_png(small)], [(1, 2, 9, 7, NONE, SOURCE), (20, 3, 9, 7, NONE, SOURCE)],
                   hidden=write_png(hidden))
    answer = service.identity(body, format="raw")
    assert np.array_equal(answer.pixels, hidden) and answer.headers["X-Lost"] == "first-frame"
    first = service.identity(body, page=0, format="raw").pixels
    expected = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    expected[2:9, 1:10] = opaque(small)
    assert np.array_equal(first, expected)


def test_filtered(service):
    """Each by itself, where rows are read twice and out of order."""
    frames = pictures(PLACES[:3], 3, "u8")
    body = animate([write_png(frame) for frame in frames], PLACES[:3])
    path = "/v1/filters/box?size=25&variant=general&border=wrap&roi=3,2,30,20&target=9,12&format=raw"
    answer = service.post(path + "&pages=all", body)
    assert answer.status == 200, answer
    assert answer.body == b"".join(service.post(f"{path}&page={page}", body).body for page in range(3))
    for page in range(3):
        still = service.identity(body, page=page, format="png").body
        assert service.post(path, still).body == service.post(f"{path}&page={page}", body).body


def test_written(service):
    """As readers that know of frames, and others, see it; with 16 bits, profile and the delays."""
    frames = [random_pixels(seed, 20, 14, 2, "u16") for seed in range(3)]
    body = animate([write_png(frame) for frame in frames], [(0, 0, 20, 14, NONE, SOURCE)] * 3, size=(20, 14))
    answer = service.identity(body, pages="all", compression=1)
    assert answer.type == "image/png" and "X-Lost" not in answer.headers
    chunks = list(png_chunks(answer.body))
    assert chunks[0][0] == b"IHDR" and chunks[-1][0] == b"IEND" and len(dict(chunks)[b"fcTL"]) == 26
    numbers = [struct.unpack(">I", data[:4])[0] for name, data in chunks if name in (b"fcTL", b"fdAT")]
    assert numbers == list(range(len(numbers)))
    expected = [np.where(frame[:, :, 1:] > 0, frame, 0) for frame in frames]
    assert np.array_equal(read_png(answer.body), expected[0])
    again = service.identity(answer.body, pages="all", format="raw").body
    assert again == b"".join(frame.tobytes() for frame in expected)


FRAMES = [write_png(random_pixels(seed, 12, 10, 3, "u8")) for seed in range(3)]
ALL = [(0, 0, 12, 10, NONE, SOURCE)] * 3
GOOD = animate(FRAMES, ALL, size=(12, 10))


def renumbered(body):
    at = body.index(b"fdAT")
    size, = struct.unpack(">I", body[at - 4:at])
    return body[:at - 4] + png_chunk(b"fdAT", b"\0\0\0\x09" + body[at + 8:at + 4 + size]) + body[at + 8 + size:]


def outside(place):
    return animate(FRAMES, ALL[:2] + [place], size=(12, 10))


@pytest.mark.parametrize("body, says", [
    (GOOD.replace(count(3), count(4)), "not as many as it says"),
    (GOOD.replace(count(3), count(2)), "not as many as it says"),
    (GOOD.replace(count(3), count(0xffffffff)), None),
    (GOOD[:-12], "truncated or damaged"),
    (GOOD[:-30] + bytes([GOOD[-30] ^ 1]) + GOOD[-29:], "truncated or damaged"),
    (renumbered(GOOD), "not in order"),
    (GOOD.replace(count(3), count(3) + control(0, ALL[0])), "not in order"),
    (outside((1, 0, 12, 10, NONE, SOURCE)), "within the image"),
    (outside((0, 0xffffffff, 12, 10, NONE, SOURCE)), "within the image"),
    (outside((0, 0, 0, 10, NONE, SOURCE)), "within the image"),
    (outside((0, 0, 12, 10, 3, SOURCE)), "fcTL"),
    (outside((0, 0, 12, 10, NONE, 2)), "fcTL"),
    (outside((0, 0, 11, 10, NONE, SOURCE)), "decoder says"),
], ids=range(13))
def test_wrong_frames(service, body, says):
    for choice in ({"pages": "all"}, {"page": 2 if body != GOOD.replace(count(3), count(2)) else 1}):
        problem = service.identity(body, **choice)
        assert problem.status == 422, (problem, choice)
        assert says is None or says in problem.problem["detail"]
    assert service.identity(GOOD, pages="all").status == 200
