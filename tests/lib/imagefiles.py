"""Image files written and read without the service's libraries where that is possible, so that a
16-bit or float sample is known to be what it was. Pixels are arrays (height, width, bands)."""
import functools
import io
import pathlib
import re
import struct
import subprocess
import tempfile
import zlib

import numpy as np
from PIL import Image

import service

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def pil(pixels):
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels,
                           MODES[pixels.shape[2]])


def written(image, name, **options):
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def several(pictures, name, **options):
    """Returns a file with all of them, as pages or frames."""
    first, *others = pictures
    return written(first, name, save_all=True, append_images=others, **options)


def exif(tags):
    """Returns a block of {tag: value}."""
    block = Image.Exif()
    block.update(tags)
    return block.tobytes()


def read_pil(body):
    """Returns the pixels of an 8-bit file, and the picture itself."""
    image = Image.open(io.BytesIO(body))
    image.load()
    pixels = np.asarray(image)
    return pixels.reshape(*pixels.shape[:2], -1), image


def shown(body):
    """Returns the colours that somebody sees in a file's first picture."""
    return np.asarray(Image.open(io.BytesIO(body)).convert("RGB"))


# PNG ----------------------------------------------------------------------------------------------

PNG_COLOUR = {1: 0, 2: 4, 3: 2, 4: 6}
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_chunk(name, content):
    return (struct.pack(">I", len(content)) + name + content
            + struct.pack(">I", zlib.crc32(name + content)))


def png_header(width, height, depth=8, colour=2, interlace=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return PNG_SIGNATURE + png_chunk(b"IHDR", header)


def write_png(pixels, chunks=()):
    """u8 or u16, 1 to 4 bands; chunks: (name, content) before the pixels."""
    height, width, bands = pixels.shape
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    rows = np.hstack([np.zeros((height, 1), np.uint8), rows])
    return (png_header(width, height, 8 * pixels.itemsize, PNG_COLOUR[bands])
            + b"".join(png_chunk(*chunk) for chunk in chunks)
            + png_chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + png_chunk(b"IEND", b""))


def png_chunks(body):
    assert body[:8] == PNG_SIGNATURE
    at = 8
    while at < len(body):
        length, = struct.unpack(">I", body[at:at + 4])
        yield body[at + 4:at + 8], body[at + 8:at + 8 + length]
        at += 12 + length


def read_png(body):
    """u8 or u16, 1 to 4 bands, by libpng: the service has a writer of its own."""
    depth, colour = body[24:26]
    if depth == 8:
        return read_pil(body)[0]
    bands = {code: count for count, code in PNG_COLOUR.items()}[colour]
    return read_vips(body, ".png", np.uint16, bands)


# PNM ----------------------------------------------------------------------------------------------

def write_pnm(pixels):
    """P5, P6, or Pf, PF for f32."""
    height, width, bands = pixels.shape
    if pixels.dtype == np.float32:
        header = f"{'Pf' if bands == 1 else 'PF'}\n{width} {height}\n-1.0\n"
        return header.encode() + pixels[::-1].astype("<f4").tobytes()
    most = 255 if pixels.dtype == np.uint8 else 65535
    header = f"{'P5' if bands == 1 else 'P6'}\n{width} {height}\n{most}\n"
    return header.encode() + pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()


def read_pnm(body):
    gap = rb"(?:\s|#[^\n]*\n)+"
    header = re.match(rb"(P[56fF])" + 3 * (gap + rb"([-\d.]+)") + rb"\s", body)
    floats, last = header[1] in (b"Pf", b"PF"), float(header[4])
    dtype = ("<f4" if last < 0 else ">f4") if floats else "u1" if last < 256 else ">u2"
    shape = int(header[3]), int(header[2]), 3 if header[1] in (b"P6", b"PF") else 1
    pixels = np.frombuffer(body, dtype, np.prod(shape), header.end()).reshape(shape)
    return (pixels[::-1] if floats else pixels).astype(pixels.dtype.newbyteorder("="))


# TIFF ---------------------------------------------------------------------------------------------

def write_tiff(pixels, alpha=False, icc=b"", orientation=None, inks=False, tags=None, data=None):
    """Returns one uncompressed strip, little-endian. tags: {tag: (code of its type, values)} in
    place of others, None: without it. data: of the strip, in place of the pixels' samples."""
    height, width, bands = pixels.shape
    extra = [] if inks else [2 if alpha else 0] * (bands - (1 if bands < 3 else 3))
    data = data or pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
    kind = {"u": 1, "i": 2, "f": 3}[pixels.dtype.kind]
    entries = {256: ("I", [width]), 257: ("I", [height]), 258: ("H", [8 * pixels.itemsize] * bands),
               259: ("H", [1]), 262: ("H", [5 if inks else 1 if bands < 3 else 2]), 273: ("I", [8]),
               274: orientation and ("H", [orientation]), 277: ("H", [bands]), 278: ("I", [height]),
               279: ("I", [len(data)]), 284: ("H", [1]), 338: extra and ("H", extra),
               339: ("H", [kind] * bands), 34675: icc and ("B", icc)} | (tags or {})
    entries = [(tag, *entry) for tag, entry in sorted(entries.items()) if entry]
    start = 8 + len(data) + len(data) % 2
    beyond = start + 2 + 12 * len(entries) + 4
    directory, values = struct.pack("<H", len(entries)), b""
    for tag, code, numbers in entries:
        parts = 2 if code == "R" else 1  # a rational number is two
        packed = struct.pack(f"<{len(numbers)}{'I' if code == 'R' else code}", *numbers)
        if len(packed) <= 4:
            field = packed.ljust(4, b"\0")
        else:
            field = struct.pack("<I", beyond + len(values))
            values += packed + b"\0" * (len(packed) % 2)
        directory += struct.pack("<HHI", tag, {"B": 7, "H": 3, "I": 4, "R": 5}[code],
                                 len(numbers) // parts) + field
    return (b"II*\0" + struct.pack("<I", start) + data + b"\0" * (len(data) % 2) + directory
            + struct.pack("<I", 0) + values)


@functools.cache
def by_vips(source, suffix, target, operation="copy", *arguments):
    """Returns what libvips' own command makes of a file: target is ".jpg[Q=90]" and the like."""
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in" + suffix), pathlib.Path(directory, "out")
        before.write_bytes(source)
        subprocess.run([service.tool("vips"), operation, before, f"{after}{target}", *arguments],
                       check=True)
        return after.with_suffix(target.partition("[")[0]).read_bytes()


def read_vips(body, suffix, dtype, bands):
    """Any file, by libvips' own command: for what nothing else here reads."""
    data = by_vips(body, suffix, ".v")
    width, height, count, _, kind = struct.unpack("=5I", data[4:24])
    assert (count, kind) == (bands, {"u1": 0, "u2": 2, "f4": 6}[np.dtype(dtype).str[1:]])
    return np.frombuffer(data, dtype, width * height * bands, 64).reshape(height, width, bands)
