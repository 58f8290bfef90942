"""JPEGs that a device decodes or encodes: byte for byte as codec workers do, or left to them."""
import concurrent.futures
import contextlib
import functools
import random

import pytest

import oracle
from imagefiles import exif, pil, read_pil, written, write_png
from jobs import begin
from pixels import pairwise, random_pixels, smooth
from service import ONE_DEVICE, poll, raw_kind, target_of

GAUSSIAN = [("gaussian", {"sigma": 1.1})]
CHAINS = [GAUSSIAN, [("sobel", {})], [("box", {"size": 15}), ("sharpen", {})],
          [("gaussian", {"sigma": 12})], [("convolve", {"kernel": "1,2,3;4,-9,4;3,2,1"})]]
SIZES = [(64, 48), (33, 17), (17, 400), (400, 17), (257, 129), (640, 480)]
BOTH, DECODED, ENCODED = "cpu0", "decode=cpu0, encode=cpu", "decode=cpu, encode=cpu0"


@pytest.fixture(scope="module")
def launch_lane(launch, jpeg_programs):
    """launch_lane(*options): a service whose device takes JPEGs; the programs for it are there."""
    @contextlib.contextmanager
    def launched(*options):
        with launch("--jpeg-on-any", "yes", *options, environment=ONE_DEVICE) as service:
            service.compiled(service.takes_jpeg, what="the programs for JPEG")
            yield service
    return launched


@pytest.fixture(scope="module")
def lane(launch_lane):
    with launch_lane("--verify-share", "0") as service:
        yield service


def jpeg(pixels, **options):
    return written(pil(pixels), "jpeg", **{"quality": 85, **options})


SMALL = jpeg(smooth(64, 64, 3))
large = functools.cache(lambda: jpeg(smooth(1600, 1200, 3)))


def post(service, body, filters=None, codec="gpu", **options):
    target = target_of(filters or GAUSSIAN, codec=codec, variant="general", **options)
    return service.post(target, body)


def by(answer):
    return answer.headers["X-Codec"]


def left(service, **labels):
    """Returns how many sides of jobs have been left to codec workers."""
    return service.total("convolved_jpeg_sides_total", **labels)


def same(service, body, filters=None, expected=BOTH, **options):
    """A device did it, and codec workers give the same bytes."""
    device = post(service, body, filters, "gpu", **options)
    cpu = post(service, body, filters, "cpu", **options)
    assert (device.status, cpu.status) == (200, 200), (device, cpu)
    assert (by(device), by(cpu)) == (expected, "cpu")
    assert device.body == cpu.body
    return device


def bare(pixels):
    """Returns pixels without a file: the body, and the parameters that describe it."""
    return pixels.tobytes(), {"raw": raw_kind(pixels), "format": "jpeg"}


def png(pixels):
    return write_png(pixels), {"format": "jpeg"}


def webp(pixels):
    return written(pil(pixels).convert("RGB"), "webp", lossless=True), {"format": "jpeg"}


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))])
def test_same_bytes(lane, part):
    for filters, (width, height), subsampling, bands, border, quality in pairwise(
            CHAINS, SIZES, [0, 1, 2], [1, 3], oracle.BORDERS, [30, 75, 95])[part::3]:
        body = jpeg(smooth(width, height, bands), subsampling=subsampling, quality=quality)
        answer = post(lane, body, filters, border=border)
        if answer.status == 422 or answer.kind[1] <= 16:  # nothing, or too little, is left by crop
            continue
        same(lane, body, filters, border=border, quality=quality)


@pytest.mark.parametrize("filters", [
    [("resize", {"width": 320})], [("resize", {"width": 99, "height": 99, "fit": "cover", "gravity": "west"}), ("sharpen", {})],
    [("box", {"size": 5}), ("resize", {"width": 700, "height": 200, "fit": "fill", "enlarge": 1, "kernel": "mitchell"})],
    [("resize", {"width": 40, "kernel": "nearest"})]])
def test_resized(lane, filters):
    for bands in 1, 3:
        body = jpeg(smooth(641, 479, bands))
        assert same(lane, body, filters).kind[1] != 641
        same(lane, body, filters, DECODED, format="png")
        pixels, options = bare(smooth(641, 479, bands))
        same(lane, pixels, filters, ENCODED, **options)


def test_drafts_are_left_to_codecs(lane):
    answer = post(lane, jpeg(smooth(2400, 1800, 3)), [("resize", {"width": 300})], draft=1)
    assert by(answer) == ENCODED and "draft" in answer.headers["X-Lost"]


def test_noise_and_restarts(lane):
    """The largest scans; and optimised tables, restart markers, metadata."""
    noise = random_pixels(1, 300, 200, 3, "u8")
    same(lane, jpeg(noise, quality=90, optimize=True), quality=90, subsample="off")
    same(lane, jpeg(noise, restart_marker_blocks=3))
    same(lane, jpeg(smooth(320, 240, 3), exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0",
                    comment=b"said", dpi=(72, 72)))


def test_stages_are_told(lane):
    answer = same(lane, jpeg(smooth(640, 480, 3)))
    assert {"jpeg_decode", "separable", "jpeg_encode"} <= answer.timing.keys()
    assert answer.accounted >= 0.9, answer.timing


def test_only_decoded(lane):
    """The filtered pixels come back, for whatever the codec worker writes."""
    for (width, height), subsampling, bands, border, answer in pairwise(
            SIZES + [(1500, 900)], [0, 1, 2], [1, 3], oracle.BORDERS,
            ["raw", "png", "ppm", "webp", "tiff"]):
        body = jpeg(smooth(width, height, bands), subsampling=subsampling)
        if border != "crop" or min(width, height) > 24:
            same(lane, body, CHAINS[width % 3], DECODED, format=answer, border=border)
    same(lane, SMALL, expected=DECODED, format="png", channels="luma")


@pytest.mark.slow
def test_only_encoded(lane):
    """Pixels of whatever the codec worker decodes go up."""
    for (width, height), bands, border, quality, kind in pairwise(
            SIZES + [(1500, 900)], [1, 3], oracle.BORDERS, [30, 75, 95], [bare, png, webp]):
        body, options = kind(smooth(width, height, bands))
        if border != "crop" or min(width, height) > 48:
            same(lane, body, CHAINS[width % 3], ENCODED, border=border, quality=quality, **options)


EXACT = {"filters": [("convolve", {"kernel": "1"})], "quality": 100}
NOISE, NOISE_OPTIONS = bare(random_pixels(3, 900, 700, 3, "u8"))


@pytest.mark.parametrize("reason, side, expected, body, options", [
    # A device encodes the answer all the same.
    ("progressive", "decode", ENCODED, jpeg(smooth(64, 64, 3), progressive=True), {}),
    ("pixels", "decode", ENCODED, SMALL, {"roi": "1,2,40,40"}),
    ("header", "decode", ENCODED, SMALL.replace(b"\xff\xdb", b"\xff\xdc\0\4\0\0\xff\xdb", 1), {}),
    ("body", "decode", ENCODED, jpeg(smooth(64, 64, 3), exif=exif({0x0112: 6})), {}),
    # A device decodes and filters; the answer is too low for one to encode.
    ("answer", "encode", DECODED, jpeg(smooth(64, 16, 3)), {}),
    # Pixels that are in the arena already become tiles.
    ("flag", "encode", "cpu", NOISE, {**EXACT, **NOISE_OPTIONS}),
    ("pixels", "decode", "cpu", SMALL, {"target": "0,0"}),
    ("pixels", "decode", "cpu", SMALL, {"verify": 1}),
    ("colours", "decode", "cpu", written(pil(smooth(64, 64, 3)).convert("CMYK"), "jpeg"), {}),
    ("flag", "decode", "cpu", jpeg(random_pixels(2, 300, 200, 3, "u8"), quality=100, subsampling=0),
     EXACT),
], ids=lambda value: value if isinstance(value, str) else "")
def test_left_to_codecs(lane, reason, side, expected, body, options):
    before = left(lane, reason=reason, side=side)
    same(lane, body, expected=expected, **options)
    assert left(lane, reason=reason, side=side) == before + 1


def test_mask(lane):
    """It is mixed with pixels, so both sides are left to codec workers."""
    mask, answers = write_png(random_pixels(1, 9, 9, 1, "u8")), []
    for codec in ("gpu", "cpu"):
        before = left(lane, reason="pixels")
        target = target_of(GAUSSIAN, codec=codec, variant="general")
        answers.append(lane.post_masked(SMALL, mask, target))
        assert by(answers[-1]) == "cpu" and left(lane, reason="pixels") == before + 2 * (codec == "gpu")
    assert answers[0].status == 200 and answers[0].body == answers[1].body != lane.post(target, SMALL).body


def test_no_side(lane):
    """Nothing here is for a device to decode or to encode."""
    deep = random_pixels(4, 60, 40, 3, "u16")
    for body, options in ((write_png(smooth(64, 64, 3)), {"format": "png"}), bare(deep)):
        answer = post(lane, body, **options)
        assert answer.status == 200 and by(answer) == "cpu", answer


@pytest.mark.parametrize("answer", ["jpeg", "ppm"])
def test_damaged(lane, answer):
    """Wherever a file is damaged, the answer is the codec worker's: status, bytes and words."""
    good = jpeg(smooth(200, 120, 3), quality=90)
    chance = random.Random(5)
    start = good.index(b"\xff\xda") + 14
    before, flags = left(lane, reason="flag"), 0
    for trial in range(60):
        body = bytearray(good)
        if trial % 3:
            body[chance.randrange(start, len(good) - 2)] = chance.randrange(256)
        else:
            del body[chance.randrange(start, len(good) - 2):-2]
        device, cpu = (post(lane, bytes(body), codec=codec, format=answer)
                       for codec in ("gpu", "cpu"))
        assert device.status == cpu.status
        if device.status == 200:
            assert device.body == cpu.body
            flags += by(device) == "cpu"
        else:
            assert device.json()["detail"] == cpu.json()["detail"]
    assert left(lane, reason="flag") > before or flags == 0


def test_many_clients(lane):
    """Jobs of several kinds at a time, by both lanes, some repeated."""
    jobs = [(jpeg(smooth(width, height, 3), quality=70 + width % 20),
             {"format": ("jpeg", "ppm")[width % 2]}) for width, height in SIZES]
    jobs.append(bare(smooth(300, 200, 3)))
    wanted = [post(lane, body, codec="cpu", **options).body for body, options in jobs]

    def one(i):
        body, options = jobs[i % len(jobs)]
        answer = post(lane, body, codec=("gpu", "auto", "gpu", "cpu")[i // 7 % 4], **options)
        return answer.status == 200 and answer.body == wanted[i % len(jobs)]
    with concurrent.futures.ThreadPoolExecutor(12) as clients:
        assert all(clients.map(one, range(96)))


@pytest.mark.parametrize("kind", ("device", "codec"))
def test_worker_dies(lane, kind):
    """The job is done all the same, whichever of its sides are scans."""
    jobs = [(large(), {}), (large(), {"format": "ppm"}), bare(smooth(1600, 1200, 3))]
    wanted = [post(lane, body, codec="cpu", **options).body for body, options in jobs]

    def again(job):
        """Asks again while the only device is being restarted, and no request is accepted."""
        def answered():
            answer = post(lane, job[0], **job[1])
            return b"being restarted" not in answer.body and answer
        return poll(answered, 60, "an answer")
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        answers = [clients.submit(again, job) for job in jobs * 4]
        lane.workers(kind)[0].kill()
        for answer, right in zip(answers, wanted * 4):
            assert answer.result().status == 200 and answer.result().body == right
    poll(lambda: lane.get("/readyz").status == 200, 60, "readiness")


def test_codec(lane):
    before = left(lane, reason="request", side="decode")
    assert by(post(lane, SMALL, codec="cpu")) == "cpu"
    assert left(lane, reason="request", side="decode") == before + 1
    post(lane, SMALL, codec="tpu").refused(400, "bad-parameter")


@pytest.mark.parametrize("options", [("--jpeg-on-any", "yes", "--jpeg-memory", "0"), ()], ids=str)
def test_without(launch, options):
    """jpeg-memory=0 leaves all to codec workers; and so do devices that are no GPUs, by default."""
    with launch(*options, environment=ONE_DEVICE) as service:
        assert by(post(service, SMALL)) == "cpu"
        assert left(service, reason="device", side="decode") == 1
        assert not service.takes_jpeg()


@pytest.mark.slow
def test_too_large(launch_lane, lane):
    share = (32 << 20) / lane.get("/v1/devices").json()["devices"][0]["memory_bytes"]
    with launch_lane("--jpeg-memory", f"{share:.6f}") as service:
        assert by(post(service, large())) == "cpu"
        assert left(service, reason="size", side="encode") == 1
        assert by(post(service, SMALL)) == "cpu0"
    assert read_pil(post(lane, large()).body)[0].shape == (1200, 1600, 3)


@pytest.mark.slow
def test_pixels_beyond_arena(launch_lane):
    """A scan that fits where the pixels of the other side do not."""
    pixels = smooth(1200, 900, 3)
    with launch_lane("--arena-size", "2M", "--verify-share", "0") as service:
        same(service, jpeg(pixels))
        same(service, jpeg(pixels), expected="cpu", format="ppm")
        assert left(service, reason="arena", side="decode") == 1
        body, options = bare(pixels)
        same(service, body, expected="cpu", **options)
        assert left(service, reason="arena", side="encode") == 1


def test_answers_in_memory(launch_lane):
    """The memory for a device's encoding is set aside for the encoded size, not for the pixels."""
    with launch_lane("--codecs", "1", "--verify-share", "0", "--spool-size", "1M") as service:
        assert len(large()) < 1 << 19
        for codec, place, who in (("gpu", "memory", BOTH), ("cpu", "file", "cpu")):
            assert by(post(service, large(), codec=codec)) == who
            service.rest()
            job = begin(service, target_of(GAUSSIAN, codec=codec, variant="general"), large())
            assert service.get(job + "/result?wait=60").status == 200
            assert service.total("convolved_spools", place=place) == 1
            service.request("DELETE", job)
        poll(lambda: service.total("convolved_spool_memory_bytes") == 0, 60, "no memory in use")


@pytest.mark.slow
def test_compared(launch_lane):
    """With verify-share each is done both ways, and the codec worker's is the answer."""
    pixels = smooth(1200, 900, 3)
    with launch_lane("--verify-share", "1") as service:
        for (body, options), sides in (((jpeg(pixels), {}), 2),
                                       ((jpeg(pixels), {"format": "ppm"}), 3), (bare(pixels), 4)):
            same(service, body, expected="cpu", **options)
            assert left(service, reason="check") == sides
        assert service.total("convolved_device_suspected_total") == 0
