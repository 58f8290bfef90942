"""AVIF files, put together by hand."""
import struct


def box(name, content=b""):
    return struct.pack(">I", len(content) + 8) + name + content


def boxes(body, at=0, end=None):
    """Yields (name, content) of each."""
    end = len(body) if end is None else end
    while at < end:
        size, = struct.unpack(">I", body[at:at + 4])
        yield body[at + 4:at + 8], body[at + 8:at + size]
        at += size


def find(body, *names, skip=0):
    """Returns the content of the first box of this path."""
    for name in names:
        body = next(content for found, content in boxes(body, skip) if found == name)
        skip = 4 if name == b"meta" else 0
    return body


def picture(file):
    """Returns AV1 data and av1C of an AVIF with one picture."""
    return (find(file, b"mdat"), find(file, b"meta", b"iprp", b"ipco", b"av1C"))


def ispe(width, height):
    return box(b"ispe", struct.pack(">III", 0, width, height))


def full(name, version, content):
    return box(name, struct.pack(">I", version << 24) + content)


GAP = b"between"


def heif(items, primary=1, parts=None, pieces=None, shared=False, split=None):
    """items: (type, data, properties), from 1; parts: {item: its dimg references}; pieces: {item:
    how often its data is named}; shared: all have the first's; split: {item: bytes apart}."""
    parts, pieces, split = parts or {}, pieces or {}, split or {}

    def built(start):
        places, at = b"", start
        for number, (_, data, _) in enumerate(items, 1):
            count, first = pieces.get(number, 1), split.get(number)
            if first:
                places += struct.pack(">HHHIIII", number, 0, 2, at, first, at + first + len(GAP), len(data) - first)
                at += len(GAP)
            else:
                places += struct.pack(">HHH", number, 0, count) + struct.pack(">II", at, len(data)) * count
            at += 0 if shared else len(data)
        infos = b"".join(full(b"infe", 2, struct.pack(">HH", number, 0) + kind + b"\0")
                         for number, (kind, _, _) in enumerate(items, 1))
        properties = [one for _, _, own in items for one in own]
        links, before = b"", 0
        for number, (_, _, own) in enumerate(items, 1):
            links += struct.pack(">HB", number, len(own)) + bytes((before + i) % 127 + 1 for i in range(len(own)))
            before += len(own)
        references = b"".join(box(kind, struct.pack(f">HH{len(to)}H", number, len(to), *to))
                              for number, (kind, to) in parts.items())
        meta = full(b"meta", 0, b"".join((
            full(b"hdlr", 0, b"\0\0\0\0pict" + bytes(13)), full(b"pitm", 0, struct.pack(">H", primary)),
            full(b"iloc", 0, struct.pack(">HH", 0x4400, len(items)) + places),
            full(b"iinf", 0, struct.pack(">H", len(items)) + infos),
            box(b"iprp", box(b"ipco", b"".join(properties))
                + full(b"ipma", 0, struct.pack(">I", len(items)) + links)),
            full(b"iref", 0, references) if references else b"")))
        return box(b"ftyp", b"avif\0\0\0\0avifmif1miaf") + meta

    start = len(built(0)) + 8
    stored = [data[:split[number]] + GAP + data[split[number]:] if number in split else data
              for number, (_, data, _) in enumerate(items, 1)]
    return built(start) + box(b"mdat", b"".join(stored[:1] if shared else stored))
