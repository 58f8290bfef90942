"""Animated PNGs by hand: what a frame leaves of the ones before, and errors."""
import io
import itertools
import struct

import numpy as np
import pytest
from PIL import Image

from imagefiles import PNG_SIGNATURE, by_vips, png_chunk, png_chunks, read_png, write_png, written
from pixels import random_pixels

WIDTH, HEIGHT = 45, 33
NONE, BACKGROUND, PREVIOUS = range(3)
SOURCE, OVER = range(2)
# x, y, width, height, dispose, blend; the first is as large as the image
PLACES = [(0, 0, WIDTH, HEIGHT, NONE, SOURCE), (5, 3, 20, 11, PREVIOUS, OVER),
          (1, 1, 40, 30, NONE, OVER), (44, 32, 1, 1, BACKGROUND, SOURCE),
          (7, 9, 30, 20, BACKGROUND, OVER), (0, 0, 45, 5, NONE, SOURCE),
          (2, 2, 41, 29, PREVIOUS, SOURCE), (9, 0, 3, 33, NONE, OVER)]
OPAQUE = [place for place in PLACES if place[4] != BACKGROUND]


def control(number, place):
    x, y, width, height, dispose, blend = place
    return png_chunk(b"fcTL", struct.pack(">5I2H2B", number, width, height, x, y, 1, 10,
                                          dispose, blend))


def count(frames):
    return png_chunk(b"acTL", struct.pack(">2I", frames, 0))


def animate(files, places, hidden=None):
    """Frames are files of one kind; hidden: the image for readers that know of no frames."""
    first = dict(png_chunks(hidden or files[0]))
    body = PNG_SIGNATURE + png_chunk(b"IHDR", first[b"IHDR"]) + count(len(files))
    body += b"".join(png_chunk(name, first[name]) for name in (b"PLTE", b"tRNS") if name in first)
    if hidden:
        body += png_chunk(b"IDAT", first[b"IDAT"])
    number = itertools.count()
    for i, (file, place) in enumerate(zip(files, places, strict=True)):
        body += control(next(number), place)
        data = dict(png_chunks(file))[b"IDAT"]
        for part in (data[:30], data[30:]):  # in two chunks
            body += (png_chunk(b"fdAT", struct.pack(">I", next(number)) + part) if i or hidden
                     else png_chunk(b"IDAT", part))
    return body + png_chunk(b"IEND", b"")


def pictures(places, bands, kind):
    return [random_pixels(seed, width, height, bands, kind, bands % 2 == 0)
            for seed, (_, _, width, height, _, _) in enumerate(places)]


def composed(frames, places, full):
    """Returns the visible part of each, in floats."""
    canvas, seen = np.zeros((HEIGHT, WIDTH, frames[0].shape[2])), []
    scale = np.array([1] * (canvas.shape[2] - 1) + [full])  # alpha is a share
    for frame, (x, y, width, height, dispose, blend) in zip(frames, places, strict=True):
        kept = canvas.copy()
        area = canvas[y:y + height, x:x + width]
        above = frame / scale
        alpha, below = above[:, :, -1:], area[:, :, -1:] * (1 - above[:, :, -1:])
        if blend == SOURCE:
            area[:] = above
        else:
            colours = above[:, :, :-1] * alpha + area[:, :, :-1] * below
            area[:, :, :-1] = colours / np.where(alpha + below > 0, alpha + below, 1)
            area[:, :, -1:] = alpha + below
        seen.append(canvas * scale)
        if dispose == BACKGROUND:
            canvas[y:y + height, x:x + width] = 0
        elif dispose == PREVIOUS:
            canvas = kept
    return seen


def opaque(pixels):
    full = np.full_like(pixels[:, :, :1], np.iinfo(pixels.dtype).max)
    return np.concatenate([pixels, full], axis=2)


@pytest.mark.parametrize("kind, bands, places", [
    ("u8", 4, PLACES), ("u16", 2, PLACES), ("u8", 3, PLACES), ("u16", 4, OPAQUE),
    ("u16", 3, OPAQUE), ("u8", 1, OPAQUE)])
def test_frames(service, kind, bands, places):
    """Alpha comes only where frames leave pixels out."""
    frames = pictures(places, bands, kind)
    full = np.iinfo(frames[0].dtype).max
    body = animate([write_png(frame) for frame in frames], places)
    answer = service.identity(body, pages="all", format="raw")
    assert answer.status == 200 and answer.headers["X-Pages"] == str(len(places)), answer
    alpha = bands % 2 == 0 or places is PLACES
    got = np.frombuffer(answer.body, frames[0].dtype).reshape(len(places), HEIGHT, WIDTH, -1)
    assert got.shape[3] == bands + (alpha and bands % 2)
    if bands % 2:
        frames = [opaque(frame) for frame in frames]
    for one, expected in zip(got, composed(frames, places, full), strict=True):
        expected = expected[:, :, :one.shape[2]]
        colours = expected[:, :, -1:] > 0.5 if alpha else True  # none where alpha is 0
        assert np.abs(one - expected * colours).max() <= 1.01
    assert service.identity(body, page=5, format="raw").body == got[5].tobytes()


def test_palettes(service):
    picture = Image.fromarray(random_pixels(1, WIDTH, HEIGHT, 3, "u8")).quantize(14)
    for options in ({}, {"transparency": 3}, {"bits": 4, "transparency": bytes(range(0, 224, 16))}):
        files = [written(picture.crop(box), "PNG", **options)
                 for box in ((0, 0, WIDTH, HEIGHT), (4, 4, 24, 30))]
        assert len({dict(png_chunks(file))[b"PLTE"] for file in files}) == 1
        places = [PLACES[0], (3, 2, 20, 26, NONE, OVER)]
        got = service.decoded(animate(files, places), page=1)
        frames = [np.asarray(Image.open(io.BytesIO(file)).convert("RGBA")) for file in files]
        wanted = composed(frames, places, 255)[1]
        wanted = wanted * (wanted[:, :, 3:] > 0.5) if options else wanted[:, :, :3]
        assert np.abs(got - wanted).max() <= 1.01, options


def test_interlaced(service):
    frame = random_pixels(7, 30, 20, 3, "u16")
    woven = by_vips(write_png(frame), ".png", ".png[interlace]")
    body = animate([woven, woven], [(0, 0, 30, 20, NONE, SOURCE)] * 2)
    assert np.array_equal(service.decoded(body, page=1), frame)


def test_hidden_picture(service):
    """The image without frames need not be one of them; the first frame may then leave pixels out."""
    hidden, small = random_pixels(1, WIDTH, HEIGHT, 3, "u8"), random_pixels(2, 9, 7, 3, "u8")
    places = [(1, 2, 9, 7, NONE, SOURCE), (20, 3, 9, 7, NONE, SOURCE)]
    body = animate([write_png(small)] * 2, places, write_png(hidden))
    answer = service.identity(body, format="raw")
    assert np.array_equal(answer.pixels, hidden) and answer.lost == ["first-frame"]
    first = service.decoded(body, page=0)
    expected = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    expected[2:9, 1:10] = opaque(small)
    assert np.array_equal(first, expected)


def test_filtered(service):
    """Each by itself, where rows are read twice and out of order."""
    frames = pictures(PLACES[:3], 3, "u8")
    body = animate([write_png(frame) for frame in frames], PLACES[:3])
    path = ("/v1/filters/box?size=25&variant=general&border=wrap&roi=3,2,30,20&target=9,12"
            "&format=raw")
    pages = [service.post(f"{path}&page={page}", body).body for page in range(3)]
    assert service.post(path + "&pages=all", body).body == b"".join(pages)
    for page, expected in enumerate(pages):
        still = service.identity(body, page=page, format="png").body
        assert service.post(path, still).body == expected


def test_written(service):
    """As readers that know of frames, and others, see it; with 16 bits, profile and the delays."""
    frames = [random_pixels(seed, 20, 14, 2, "u16") for seed in range(3)]
    body = animate([write_png(frame) for frame in frames], [(0, 0, 20, 14, NONE, SOURCE)] * 3)
    answer = service.identity(body, pages="all", compression=1)
    assert answer.type == "image/png" and not answer.lost
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
GOOD = animate(FRAMES, ALL)
FEWER = GOOD.replace(count(3), count(2))
PART = dict(png_chunks(FRAMES[1]))[b"IDAT"][:30]
RENUMBERED = GOOD.replace(png_chunk(b"fdAT", b"\0\0\0\2" + PART),
                          png_chunk(b"fdAT", b"\0\0\0\x09" + PART))


def last(*place):
    return animate(FRAMES, ALL[:2] + [place])


@pytest.mark.parametrize("body, says", [
    (GOOD.replace(count(3), count(4)), "not as many as it says"),
    (FEWER, "not as many as it says"),
    (GOOD.replace(count(3), count(0xffffffff)), ""),
    (GOOD[:-12], "truncated or damaged"),
    (GOOD[:-30] + bytes([GOOD[-30] ^ 1]) + GOOD[-29:], "truncated or damaged"),
    (RENUMBERED, "not in order"),
    (GOOD.replace(count(3), count(3) + control(0, ALL[0])), "not in order"),
    (last(1, 0, 12, 10, NONE, SOURCE), "within the image"),
    (last(0, 0xffffffff, 12, 10, NONE, SOURCE), "within the image"),
    (last(0, 0, 0, 10, NONE, SOURCE), "within the image"),
    (last(0, 0, 12, 10, 3, SOURCE), "fcTL"),
    (last(0, 0, 12, 10, NONE, 2), "fcTL"),
    (last(0, 0, 11, 10, NONE, SOURCE), "decoder says"),
], ids=range(13))
def test_wrong_frames(service, body, says):
    for choice in ({"pages": "all"}, {"page": 2 if body != FEWER else 1}):
        answer = service.identity(body, **choice)
        assert answer.status == 422 and says in answer.problem["detail"], (answer, choice)
    assert service.identity(GOOD, pages="all").status == 200
