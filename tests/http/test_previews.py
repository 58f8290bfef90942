"""No answer carries a picture of its image before the filter: the thumbnail of a blurred photograph
shows it sharp. Other metadata of the photograph stays."""
import numpy as np
import pytest
from PIL import Image

import imagefiles
import previews
from fixtures import some

MARK = b"SHARP-Q7x3vKz9pLmW2nTb"
SAMPLES = previews.samples(MARK)
RESOURCES = previews.resource(1028, previews.CAPTION) + previews.resource(1034, b"\1")  # in others' company
MAKER, EXPOSURE, GPS, EXIF = 0x010F, 0x829A, 0x8825, 0x8769


def read(file):
    return imagefiles.read_pil(file)[1]


def blurred(service, file, **options):
    query = "&".join(f"{name}={value}" for name, value in {"sigma": 3, **options}.items())
    answer = service.post(f"/v1/filters/gaussian?{query}", file)
    assert answer.status == 200, answer
    return answer.body


def keeps_camera(image):
    exif = image.getexif()
    assert exif.get(MAKER) == "Maker of cameras"
    assert float(exif.get_ifd(EXIF)[EXPOSURE]) == pytest.approx(1 / 125)
    assert [float(v) for v in exif.get_ifd(GPS)[2]] == [52, 30, 12]


def keeps_title(file):
    text = b" ".join(previews.texts(file))
    assert b"A title &amp; more</dc:title>" in text and b'xmp:Rating="4"' in text
    assert b'<?xpacket begin="\xef\xbb\xbf"' in text and b"</x:xmpmeta>" in text


@pytest.mark.parametrize("name", some(SAMPLES, 3))
def test_answers_hold_no_preview(service, name):
    """Nor does one of a part, or of a part on the whole; what else is of its kind stays."""
    file = SAMPLES[name]
    assert previews.holds(file, MARK), "the sample has none"
    for options in ({}, {"roi": "4,4,30,20"}, {"roi": "4,4,30,20", "target": "9,9"}):
        body = blurred(service, file, **options)
        assert not previews.holds(body, MARK), options
        image = read(body)
        assert image.info.get("icc_profile") == previews.PROFILE
        if image.format != "WEBP":
            assert image.info["dpi"] == pytest.approx((300, 300), abs=0.6)
        if "-exif-" in name:
            keeps_camera(image)
        if "-xmp-" in name and "extension" not in name:
            keeps_title(body)
        if "-resources-" in name:
            assert RESOURCES in body


@pytest.mark.parametrize("target", ["jpeg", "png", "webp", "tiff", *(
    pytest.param(name, marks=pytest.mark.slow) for name in ("gif", "avif", "ppm", "raw"))])
def test_conversions_hold_no_preview(service, target):
    for name, file in SAMPLES.items():
        body = blurred(service, file, format=target)
        assert not previews.holds(body, MARK), name
        if target in ("jpeg", "png", "webp") and "-exif-" in name:
            keeps_camera(read(body))
        if (target in ("jpeg", "png", "webp", "tiff") and "-xmp-" in name
                and "extension" not in name):
            keeps_title(body)


def test_frames_are_no_previews(service):
    """Frames after the first do not travel either."""
    frames = [Image.fromarray(np.full((20, 30), 40 * i, np.uint8)).convert("RGB") for i in range(4)]
    for name in ("GIF", "WEBP", "TIFF", "PNG"):
        file = imagefiles.several(frames, name)
        assert read(file).n_frames == 4
        assert getattr(read(blurred(service, file)), "n_frames", 1) == 1


@pytest.mark.parametrize("broken", [
    b"<x:xmpmeta><unclosed>" + MARK, b"\xff\xfe" + "<a>SHARP</a>".encode("utf-16-le"), b"", b"\0\0",
    b"<a>" * 5000 + MARK, b"<a b='" + MARK, b"<!DOCTYPE a [<!ENTITY b '" + MARK + b"'>]><a>&b;</a>",
])
def test_what_cannot_be_read_goes(service, broken):
    body = blurred(service, previews.jpeg(previews.segment(0xE1, previews.XMP + broken)))
    assert not previews.holds(body, MARK) and b"xmpmeta" not in body


@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_cut_off_blocks(service, cut):
    """The whole ones stay. (libvips 8.14 writes a quarter of a TIFF's data sets.)"""
    resources = (previews.resource(1028, previews.CAPTION)
                 + previews.resource(1036, previews.picture(MARK)))
    sets = previews.CAPTION + previews.data_set(2, 202, previews.picture(MARK))
    at = 40 + cut
    for file, kept in (
            (previews.jpeg(previews.segment(0xED, b"Photoshop 3.0\0" + resources[:at])), True),
            (previews.tiff({34377: resources[:at]}), True),
            (previews.tiff({33723: sets[:at]}), False)):
        body = blurred(service, file)
        assert MARK[:8] not in body and (b"A caption" in body or not kept)
