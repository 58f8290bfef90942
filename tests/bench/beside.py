"""Pictures of real files as the service decodes them, beside Pillow's and libvips's."""
import collections
import concurrent.futures
import io
import re
import struct
import subprocess
import tempfile
import warnings

import numpy as np
from PIL import Image, ImageOps

MOST = 64000000  # pixels


def by_pillow(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = Image.open(io.BytesIO(path.read_bytes()))  # by a file, Pillow closes descriptors of other threads after errors
        assert image.width * image.height <= MOST
        image.load()
        image = ImageOps.exif_transpose(image)
    clear = "transparency" in image.info
    if image.mode in ("1", "P", "PA", "YCbCr", "LAB", "HSV", "RGBX", "La", "RGBa") or clear and image.mode in ("L", "RGB"):
        image = image.convert("RGBA" if clear or image.mode[-1] in "Aa" else "L" if image.mode == "1" else "RGB")
    pixels = np.asarray(image)
    if pixels.dtype == np.int32:
        pixels = pixels.astype(np.uint16)
    return pixels.reshape(*pixels.shape[:2], -1)


def by_libvips(path):
    with tempfile.NamedTemporaryFile(suffix=".v") as made:
        subprocess.run(["prlimit", "--as=3000000000", "--cpu=20", "vips", "autorot", path, made.name], check=True,
                       capture_output=True)
        head = struct.unpack("<7i", made.read(32)[4:])
        assert head[0] * head[1] <= MOST
        width, height, bands, kind = *head[:3], head[4]
        pixels = np.fromfile(made.name, ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "c8", "f8")[kind],
                             width * height * bands, offset=64)
    return pixels.reshape(height, width, bands)


def spread(pixels):
    """Returns RGBA, of 255; what is not seen has no colour."""
    scale = {"u": 255 / np.iinfo(pixels.dtype).max} if pixels.dtype.kind == "u" else {}
    pixels = pixels.astype(np.float32) * scale.get("u", 255)
    if pixels.shape[2] < 3:
        pixels = np.concatenate([pixels[:, :, :1]] * 3 + [pixels[:, :, 1:]], axis=2)
    if pixels.shape[2] == 3:
        pixels = np.concatenate([pixels, np.full_like(pixels[:, :, :1], 255)], axis=2)
    return np.where(pixels[:, :, 3:4] == 0, 0, pixels)


def verdict(answer, decode, path):
    """Says how another decoder's picture differs from this answer."""
    try:
        theirs = decode(path)
    except Exception:
        theirs = None
    if answer.status != 200:
        said = re.sub(r"\d+", "N", answer.problem["detail"])[:90]
        return "both refuse" if theirs is None else f"only they read it ({answer.status}): {said}"
    if theirs is None:
        return "only we read it"
    ours = answer.pixels
    if ours.shape[:2] != theirs.shape[:2]:
        return "other size"
    off = 0
    for row in range(0, len(ours), 64):
        one, other = spread(ours[row:row + 64]), spread(theirs[row:row + 64])
        if one.shape != other.shape:
            return "other bands"
        off = max(off, np.nanmax(np.abs(one - other), initial=0))
    return "the same" if off < 0.51 else "off by 1 or 2" if off < 2.51 else "differs"


def beside(service, target, corpus, names):
    """Yields how whole files are decoded beside Pillow and libvips, by kind of difference."""
    def judged(name):
        answer = service.post(target, corpus.body(name))
        path = corpus.files[name.partition(":")[0]]
        return [(corpus.format(name), who, verdict(answer, decode, path))
                for who, decode in (("Pillow", by_pillow), ("libvips", by_libvips))]
    names, classes = [name for name in names if corpus.format(name) != "other"], collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, every in zip(names, pool.map(judged, names)):
            for one in every:
                classes[one].append(name)
    for (kind, who, what), found in sorted(classes.items()):
        yield {"format": kind, "beside": who, "verdict": what, "count": len(found), "such as": " ".join(
            name.partition(":")[0] for name in found[:6])}
