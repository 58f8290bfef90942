"""Damaged files: cut, with bits flipped, spliced with another, with sizes changed. Each follows from
its name."""
import re
import struct
import zlib

MAGIC = {"jpeg": rb"\xff\xd8\xff", "png": rb"\x89PNG\r\n\x1a\n", "gif": rb"GIF8[79]a", "webp": rb"RIFF....WEBP",
         "tiff": rb"II[*+]\0|MM\0[*+]", "bmp": rb"BM.{12}[\x0c(48@l|]\0\0\0", "pnm": rb"P[1-7Ff]\s", "heif": rb"....ftyp",
         "jxl": rb"\xff\n|\0\0\0\x0cJXL ", "hdr": rb"#\?R"}


def format_of(data):
    return next((name for name, magic in MAGIC.items() if re.match(magic, data, re.S)), "other")


def sizes(data):
    """Returns where a file tells its width and height: [(start, end, code)], code being struct's or
    "text"."""
    kind = format_of(data)
    if kind == "png":
        return [(16, 20, ">I"), (20, 24, ">I")]
    if kind == "gif":
        table = 3 << (data[10] & 7) + 1 if data[10] & 128 else 0
        image = data.find(b",", 13 + table)
        return [(at, at + 2, "<H") for at in (6, 8, *((image + 5, image + 7) if image > 0 else ()))]
    if kind == "bmp":
        return [(18, 20, "<H"), (20, 22, "<H")] if data[14] == 12 else [(18, 22, "<i"), (22, 26, "<i")]
    if kind == "webp":
        at = {b"VP8 ": (26, 28), b"VP8L": (21, 22), b"VP8X": (24, 27)}.get(data[12:16], ())
        return [(start, start + 2, "<H") for start in at]
    if kind == "jpeg":
        at = 2
        while at + 9 < len(data) and data[at] == 0xff:
            if data[at + 1] & 0xf0 == 0xc0 and data[at + 1] not in (0xc4, 0xc8, 0xcc):
                return [(at + 5, at + 7, ">H"), (at + 7, at + 9, ">H")]
            at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    if kind == "tiff" and data[2:4] in (b"*\0", b"\0*"):
        order = "<" if data[:1] == b"I" else ">"
        first = struct.unpack(order + "I", data[4:8].ljust(4, b"\0"))[0]
        entries = range(first + 2, min(first + 2 + 12 * 40, len(data) - 12), 12)
        return [(at + 8, at + 10, order + "H") if field == 3 else (at + 8, at + 12, order + "I") for at in entries
                for tag, field in (struct.unpack(order + "HH", data[at:at + 4]),) if tag in (256, 257)][:2]
    if kind == "heif" and (at := data.find(b"ispe")) > 0:
        return [(at + 8, at + 12, ">I"), (at + 12, at + 16, ">I")]
    text = {"pnm": rb"P[1-7Ff]\s+(?:#.*\n|WIDTH )*(\d+)\s+(?:HEIGHT )?(\d+)", "hdr": rb"(?s).*?\n[-+]Y (\d+) [-+]X (\d+)\n"}.get(kind)
    found = text and re.match(text, data)
    return [(*found.span(group), "text") for group in (1, 2)] if found else []


def resized(data, rng):
    """Rewrites one of the sizes that a file tells, or both; of a file without them, any two bytes."""
    body = bytearray(data)
    places = sizes(data) or [(at, at + 2, ">H") for at in (rng.randrange(len(data)),)]
    for start, end, code in sorted(rng.sample(places, rng.randint(1, min(2, len(places)))), reverse=True):
        old = bytes(body[start:end])
        if code == "text":
            value = int(old)
        elif len(old) == struct.calcsize(code):
            value, = struct.unpack(code, old)
        else:
            continue
        value = rng.choice((0, 1, value - 1, value + 1, value // 2, value * 2, value + 8, 65535, rng.randrange(1 << 14)))
        most = (1 << 31) - 1 if code[1] in "Iie" else 65535
        value = max(0, min(value, most))
        body[start:end] = b"%d" % value if code == "text" else struct.pack(code, value)
    if data[12:16] == b"IHDR":
        body[29:33] = struct.pack(">I", zlib.crc32(body[12:29]))
    return bytes(body)


def flipped(data, rng):
    body = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        # Half of them at the front, where headers are.
        body[int(rng.randrange(len(body)) * rng.choice((1, rng.random() ** 4)))] ^= 1 << rng.randrange(8)
    return bytes(body)


def spliced(data, rng, donor):
    """The head of a file, then the rest of another one, from the same place or any."""
    at = rng.randrange(len(data))
    return data[:at] + donor[at if at < len(donor) and rng.random() < 0.5 else rng.randrange(len(donor)):]


MUTATIONS = {"cut": lambda data, rng: data[:rng.randrange(len(data))], "bits": flipped, "splice": spliced, "sizes": resized}
