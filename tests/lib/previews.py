"""Files with marked pictures in their metadata, and a search for the mark in an answer."""
import base64
import re
import struct
import zlib
from functools import partial

import numpy as np
from PIL import Image, ImageCms

import imagefiles
from fixtures import Made
from pixels import smooth

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
PROFILE = PROFILE[:24] + bytes(12) + PROFILE[36:]  # without the time, as it is in names of tests


def picture(mark):
    """Returns a small JPEG with the mark in a comment."""
    noise = np.random.default_rng(len(mark)).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    file = imagefiles.written(imagefiles.pil(noise), "JPEG", quality=60)
    return file[:2] + segment(0xFE, mark) + file[2:]


def segment(marker, content):
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def even(data):
    return data + b"\0" * (len(data) % 2)


def texts(file):
    """Yields the file, and all that is deflated in it."""
    yield file
    chunks = imagefiles.png_chunks(file) if file.startswith(imagefiles.PNG_SIGNATURE) else ()
    for name, content in chunks:
        for start in range(40 if name in (b"zTXt", b"iTXt") else 0):
            try:
                yield zlib.decompress(content[start:])
            except zlib.error:
                pass


def holds(file, mark):
    """Tells whether the mark is there: bare, in hexadecimal or base64, or in something deflated."""
    spellings = [mark, mark.hex().encode()]
    for shift in range(3):  # characters that no neighbour has a part in
        text = base64.b64encode(b"\0" * shift + mark)
        spellings.append(text[(0, 2, 3)[shift]:len(text) // 4 * 4 - 4])
    return any(spelling.lower() in re.sub(rb"\s", b"", text).lower()
               for text in texts(file) for spelling in spellings)


# EXIF ---------------------------------------------------------------------------------------------

def text(tag, value):
    return (tag, 2, len(value) + 1, value.encode() + b"\0")


def block(tag, value, kind=7):
    return (tag, kind, len(value), value)


def directories(chain, linked=(), tail=b""):
    """Returns a TIFF of directories in a chain and of those that entries link to, whose value is
    a number of all, or "tail" for the start of the bytes at the end."""
    everything = [*chain, *linked]
    starts, at = [], 8
    for entries in everything:
        starts.append(at)
        at += 6 + 12 * len(entries) + sum(len(even(value)) for *_, value in entries
                                          if isinstance(value, bytes) and len(value) > 4)
    file = bytearray(b"II*\0" + struct.pack("<I", 8))
    for i, entries in enumerate(everything):
        fields, values = bytearray(), bytearray()
        beyond = starts[i] + 6 + 12 * len(entries)
        for tag, kind, count, value in sorted(entries, key=lambda entry: entry[0]):
            if isinstance(value, bytes) and len(value) > 4:
                place = beyond + len(values)
                values += even(value)
                value = struct.pack("<I", place)
            elif not isinstance(value, bytes):
                value = struct.pack("<I", at if value == "tail" else starts[value])
            fields += struct.pack("<HHI", tag, kind, count) + value.ljust(4, b"\0")
        follows = starts[i + 1] if i + 1 < len(chain) else 0
        file += struct.pack("<H", len(entries)) + fields + struct.pack("<I", follows) + values
    return bytes(file + tail)


CAMERA = [text(0x010F, "Maker of cameras"), text(0x0110, "Model 7")]
PLACE = [(1, 2, 2, b"N\0"), (2, 5, 3, struct.pack("<6I", 52, 1, 30, 1, 12, 1))]
EXPOSURE = (0x829A, 5, 1, struct.pack("<2I", 1, 125))


def exif(thumbnail=(), tail=b"", image=(), private=()):
    """thumbnail: entries of the second directory; image, private: more of the first, of EXIF's."""
    linked = [[EXPOSURE, *private], PLACE]
    chain = [[*CAMERA, *image], list(thumbnail)] if thumbnail else [[*CAMERA, *image]]
    pointers = [(0x8769, 4, 1, len(chain)), (0x8825, 4, 1, len(chain) + 1)]
    return directories([chain[0] + pointers, *chain[1:]], linked, tail)


def jpeg_thumbnail(mark):
    file = picture(mark)
    return [(0x0103, 3, 1, struct.pack("<H", 6)), (0x0201, 4, 1, "tail"),
            (0x0202, 4, 1, struct.pack("<I", len(file)))], file


def exif_kinds(mark):
    entries, file = jpeg_thumbnail(mark)
    strip = [(0x0100, 4, 1, struct.pack("<I", 32)), (0x0101, 4, 1, struct.pack("<I", 2)),
             (0x0103, 3, 1, struct.pack("<H", 1)), (0x0111, 4, 1, "tail"),
             (0x0117, 4, 1, struct.pack("<I", 192))]
    return {
        "thumbnail": exif(entries, file),
        "uncompressed": exif(strip, mark.ljust(192, b"\x55")),
        "first-directory": exif((), file, entries[1:]),
        "maker-note": exif(private=[block(0x927C, b"OLYMP\0\1\0" + file)]),
        "packet": exif(image=[block(0x02BC, xmp_kinds(mark)["thumbnails"], 1)]),
        "image-sources": exif(image=[block(0x8649, resource(1036, b"\0" * 28 + file))]),
        "padding": exif(image=[block(0xEA1C, file)]),
        "unknown": exif(image=[block(0xC7D5, file)], private=[block(0x9999, file)]),
        "press": exif(image=[block(0x83BB, data_set(2, 202, file))]),
    }


# XMP ----------------------------------------------------------------------------------------------

def xmp(inside="", attributes=""):
    return f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:xmpGImg="http://ns.adobe.com/xap/1.0/g/img/" xmlns:other="urn:other"
 xmlns:GImage="http://ns.google.com/photos/1.0/image/" xmp:Rating="4" {attributes}>
<dc:title>A title &amp; more</dc:title>{inside}</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>""".encode()


def xmp_kinds(mark):
    code = base64.b64encode(picture(mark)).decode()
    lines = "\n      ".join(code[i:i + 76] for i in range(0, len(code), 76))
    thumbnails = ("<xmp:Thumbnails><rdf:Alt><rdf:li rdf:parseType='Resource'>"
                  "<xmpGImg:format>JPEG</xmpGImg:format><xmpGImg:image>{}</xmpGImg:image>"
                  "</rdf:li></rdf:Alt></xmp:Thumbnails>")
    return {
        "thumbnails": xmp(thumbnails.format(code)),
        "thumbnails-lines": xmp(thumbnails.format(code.replace("=", "&#61;") + "&#xA;")),
        "image-attribute": xmp(f"<rdf:li xmpGImg:format='JPEG' xmpGImg:image='{code[:90]}'/>"),
        "original": xmp(attributes=f"GImage:Mime='image/jpeg' GImage:Data='{code}'"),
        "unknown-element": xmp(f"<other:Copy>\n      {lines}\n</other:Copy>"),
        "unknown-attribute": xmp(attributes=f'other:Copy="{code}"'),
        "unknown-cdata": xmp(f"<other:Copy><![CDATA[{code}]]></other:Copy>"),
        "unknown-comment": xmp(f"<!-- {code} -->"),
    }


# Photoshop's resources, IPTC ----------------------------------------------------------------------

def resource(number, data, name=b""):
    return (b"8BIM" + struct.pack(">H", number) + even(bytes([len(name)]) + name)
            + struct.pack(">I", len(data)) + even(data))


def data_set(record, number, data):
    return struct.pack(">BBBH", 0x1C, record, number, len(data)) + data


CAPTION = data_set(2, 120, b"A caption")


def resource_kinds(mark):
    file = picture(mark)
    kinds = {"thumbnail": resource(1036, b"\0" * 28 + file),
             "old-thumbnail": resource(1033, b"\0" * 28 + file, b"named"),
             "exif": resource(1058, exif_kinds(mark)["thumbnail"]),
             "xmp": resource(1060, xmp_kinds(mark)["thumbnails"]),
             "plug-in": resource(4003, file),
             "preview": resource(1028, data_set(2, 202, file) + CAPTION)}
    rest = resource(1028, CAPTION) + resource(1034, b"\1")
    return {name: kind + rest for name, kind in kinds.items()}


# Files --------------------------------------------------------------------------------------------

def photograph():
    return imagefiles.pil(smooth(64, 48, 3))


def jpeg(*segments, after=b""):
    file = imagefiles.written(photograph(), "JPEG", quality=95, icc_profile=PROFILE, dpi=(300, 300))
    return file[:20] + b"".join(segments) + file[20:] + after  # after APP0


def png(*chunks, frames=False):
    options = {"save_all": True, "append_images": [photograph()]} if frames else {}
    file = imagefiles.written(photograph(), "PNG", icc_profile=PROFILE, dpi=(300, 300), **options)
    return file[:33] + b"".join(imagefiles.png_chunk(*chunk) for chunk in chunks) + file[33:]


def webp(exif_block=b"", xmp_block=b"", more=b""):
    file = imagefiles.written(photograph(), "WEBP", lossless=True, icc_profile=PROFILE,
                              exif=exif_block, xmp=xmp_block) + more
    return file[:4] + struct.pack("<I", len(file) - 8) + file[8:]


def tiff(tags, pages=()):
    return imagefiles.written(photograph(), "TIFF", icc_profile=PROFILE, dpi=(300, 300),
                              tiffinfo=tags, save_all=bool(pages), append_images=list(pages))


EXIF, XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"


def profile_text(name, data):
    """Returns the text of a raw profile as ImageMagick writes it."""
    lines = data.hex()
    lines = "\n".join(lines[i:i + 72] for i in range(0, len(lines), 72))
    return f"\n{name}\n{len(data):8}\n{lines}\n".encode()


def samples(mark):
    """Returns files by name, each with the mark in a picture within its metadata."""
    file, files = picture(mark), {}
    for name, data in exif_kinds(mark).items():
        files[f"jpeg-exif-{name}"] = partial(jpeg, segment(0xE1, EXIF + data))
        files[f"png-exif-{name}"] = partial(png, (b"eXIf", data))
        files[f"webp-exif-{name}"] = partial(webp, exif_block=EXIF + data)
    for name, data in xmp_kinds(mark).items():
        files[f"jpeg-xmp-{name}"] = partial(jpeg, segment(0xE1, XMP + data))
        files[f"png-xmp-{name}"] = partial(png, (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + data))
        files[f"webp-xmp-{name}"] = partial(webp, xmp_block=data)
        files[f"tiff-xmp-{name}"] = partial(tiff, {700: data})
    for name, data in resource_kinds(mark).items():
        files[f"jpeg-resources-{name}"] = partial(jpeg, segment(0xED, b"Photoshop 3.0\0" + data))
        files[f"tiff-resources-{name}"] = partial(tiff, {34377: data})
    extension = b"http://ns.adobe.com/xmp/extension/\0" + b"0" * 32 + struct.pack(">2I", 9999, 0)
    palette = bytes(768) + mark.ljust(100, b"\0")
    deflated = b"\0\1\0\0\0" + zlib.compress(xmp_kinds(mark)["thumbnails"])
    files |= {
        "jpeg-jfif": partial(jpeg, segment(0xE0, b"JFIF\0\1\2\1\x01\x2c\x01\x2c\x08\x08" + mark.ljust(192, b"\0"))),
        "jpeg-jfxx-jpeg": partial(jpeg, segment(0xE0, b"JFXX\0\x10" + file)),
        "jpeg-jfxx-palette": partial(jpeg, segment(0xE0, b"JFXX\0\x11\x0a\x0a" + palette)),
        "jpeg-jfxx-rgb": partial(jpeg, segment(0xE0, b"JFXX\0\x13\x08\x08" + mark.ljust(192, b"\0"))),
        "jpeg-mpf": partial(jpeg, segment(0xE2, b"MPF\0II*\0" + mark), after=file),
        "jpeg-flashpix": partial(jpeg, segment(0xE2, b"FPXR\0" + file)),
        "jpeg-unknown": partial(jpeg, segment(0xEB, b"HDR_RI" + file)),
        "jpeg-xmp-extension": partial(jpeg, segment(0xE1, extension + xmp_kinds(mark)["thumbnails"])),
        "png-xmp-deflated": partial(png, (b"iTXt", b"XML:com.adobe.xmp" + deflated)),
        "png-unknown": partial(png, (b"prVW", file)),
        "png-frames": partial(png, (b"fdAT", b"\0\0\0\1" + file), frames=True),
        "webp-unknown": partial(webp, more=b"PrVW" + struct.pack("<I", len(even(file))) + even(file)),
        "tiff-iptc": partial(tiff, {33723: data_set(2, 202, file) + CAPTION}),
        "tiff-layers": partial(tiff, {37724: file}),
        "tiff-unknown": partial(tiff, {65000: file}),
    }
    for name, data in (("exif", EXIF + exif_kinds(mark)["thumbnail"]),
                       ("APP1", EXIF + exif_kinds(mark)["thumbnail"]),
                       ("8bim", resource_kinds(mark)["thumbnail"]),
                       ("iptc", data_set(2, 202, file))):
        keyword = f"Raw profile type {name}\0\0".encode()
        text = zlib.compress(profile_text(name, data))
        files[f"png-raw-profile-{name}"] = partial(png, (b"zTXt", keyword + text))
    page = Image.frombytes("RGB", (16, 16), mark.ljust(768, b"\0"))
    files["tiff-page"] = partial(tiff, {}, [page])
    return Made(files)
