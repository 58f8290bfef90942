"""JPEGs that a device decodes, filters and encodes, or one of them: byte for byte what codec workers answer;
and all that devices leave to them."""
import concurrent.futures
import random

import pytest

from imagefiles import pil, read_pil, written, write_png
from pixels import pairwise, random_pixels, smooth
from service import ONE_DEVICE, poll, raw_kind, target_of

GAUSSIAN = [("gaussian", {"sigma": 1.1})]
CHAINS = [GAUSSIAN, [("sobel", {})], [("box", {"size": 15}), ("sharpen", {})],
          [("gaussian", {"sigma": 12})], [("convolve", {"kernel": "1,2,3;4,-9,4;3,2,1"})]]
SIZES = [(64, 48), (33, 17), (17, 400), (400, 17), (257, 129), (640, 480)]
BORDERS = ["replicate", "reflect", "reflect101", "wrap", "constant", "crop"]
BOTH, DECODED, ENCODED = "cpu0", "decode=cpu0, encode=cpu", "decode=cpu, encode=cpu0"


def takes_jpeg(service):
    return any(device["jpeg"] for device in service.get("/v1/devices").json()["devices"])


def ready(service):
    service.compiled(lambda: takes_jpeg(service), what="the programs for JPEG")


@pytest.fixture(scope="module")
def lane(launch):
    with launch("--jpeg-on-any", "yes", "--verify-share", "0",
                environment=ONE_DEVICE) as service:
        ready(service)
        yield service


def jpeg(pixels, **options):
    return written(pil(pixels), "jpeg", **{"quality": 85, **options})


def post(service, body, filters=None, codec="gpu", **options):
    return service.post(target_of(filters or GAUSSIAN, codec=codec, variant="general", **options), body)


def by(answer):
    return answer.headers["X-Codec"]


def left(metrics, reason, side=None):
    return metrics.total("convolved_jpeg_sides_total", reason=reason, **({"side": side} if side else {}))


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


@pytest.mark.parametrize("filters", CHAINS, ids=str)
def test_same_bytes(lane, filters):
    for (width, height), subsampling, bands, border, quality in pairwise(
            SIZES, [0, 1, 2], [1, 3], BORDERS, [30, 75, 95]):
        body = jpeg(smooth(width, height, bands), subsampling=subsampling, quality=quality)
        answer = post(lane, body, filters, "gpu", border=border)
        if answer.status == 422 or answer.kind[1] <= 16:  # nothing, or too little, is left by crop
            continue
        same(lane, body, filters, border=border, quality=quality)


def test_noise_and_restarts(lane):
    """The largest scans; and optimised tables, restart markers, metadata."""
    noise = random_pixels(1, 300, 200, 3, "u8")
    same(lane, jpeg(noise, quality=90, optimize=True), quality=90, subsample="off")
    same(lane, jpeg(noise, restart_marker_blocks=3))
    same(lane, jpeg(smooth(320, 240, 3), exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0", comment=b"said",
                    dpi=(72, 72)))


def test_stages_are_told(lane):
    answer = same(lane, jpeg(smooth(640, 480, 3)))
    for stage in ("jpeg_decode", "separable", "jpeg_encode"):
        assert f"{stage};dur=" in answer.headers["Server-Timing"]
    assert answer.accounted >= 0.9, answer.timing


@pytest.mark.parametrize("answer", ["raw", "png", "ppm", "webp", "tiff"])
def test_only_decoded(lane, answer):
    """The filtered pixels come back, for whatever the codec worker writes."""
    for (width, height), subsampling, bands, border in pairwise(
            SIZES + [(1500, 900)], [0, 1, 2], [1, 3], BORDERS):
        body = jpeg(smooth(width, height, bands), subsampling=subsampling)
        filters = CHAINS[width % 3]
        if border != "crop" or min(width, height) > 24:
            same(lane, body, filters, DECODED, format=answer, border=border)


def test_only_encoded(lane):
    """Pixels of whatever the codec worker decodes go up."""
    for (width, height), bands, border, quality, kind in pairwise(
            SIZES + [(1500, 900)], [1, 3], BORDERS, [30, 75, 95], [bare, png, webp]):
        body, options = kind(smooth(width, height, bands))
        if border != "crop" or min(width, height) > 48:
            same(lane, body, CHAINS[width % 3], ENCODED, border=border, quality=quality, **options)


def test_only_encoded_flagged(lane):
    """The pixels are in the arena already, and become tiles."""
    body, options = bare(random_pixels(3, 900, 700, 3, "u8"))
    before = lane.metrics()
    same(lane, body, [("convolve", {"kernel": "1"})], "cpu", quality=100, **options)
    assert left(lane.metrics(), "flag", "encode") == left(before, "flag", "encode") + 1


@pytest.mark.parametrize("reason, body, options", [
    ("progressive", jpeg(smooth(64, 64, 3), progressive=True), {}),
    ("pixels", jpeg(smooth(64, 64, 3)), {"roi": "1,2,40,40"}),
    ("header", jpeg(smooth(64, 64, 3)).replace(b"\xff\xdb", b"\xff\xdc\0\x04\0\0\xff\xdb", 1), {}),
    ("body", jpeg(smooth(64, 64, 3), exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
                                          b"\0\0\0\0"), {}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_decoding_left_to_codecs(lane, reason, body, options):
    """A device encodes the answer all the same."""
    before = lane.metrics()
    same(lane, body, expected=ENCODED, **options)
    assert left(lane.metrics(), reason, "decode") == left(before, reason, "decode") + 1


@pytest.mark.parametrize("reason, body, options", [
    ("request", jpeg(smooth(64, 64, 3)), {"codec": "cpu"}),
    ("pixels", jpeg(smooth(64, 64, 3)), {"target": "0,0"}),
    ("pixels", jpeg(smooth(64, 64, 3)), {"verify": 1}),
    ("colours", written(pil(smooth(64, 64, 3)).convert("CMYK"), "jpeg"), {}),
    ("flag", jpeg(random_pixels(2, 300, 200, 3, "u8"), quality=100, subsampling=0),
     {"filters": [("convolve", {"kernel": "1"})], "quality": 100}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_left_to_codecs(lane, reason, body, options):
    before = lane.metrics()
    answer = post(lane, body, **{"codec": "gpu", **options})
    assert answer.status == 200 and by(answer) == "cpu", answer
    assert left(lane.metrics(), reason, "decode") == left(before, reason, "decode") + 1


def test_encoding_left_to_codecs(lane):
    """A device decodes and filters; the answer is too low for one to encode, or of another kind."""
    before = lane.metrics()
    same(lane, jpeg(smooth(64, 16, 3)), expected=DECODED)
    assert left(lane.metrics(), "answer", "encode") == left(before, "answer", "encode") + 1
    same(lane, jpeg(smooth(64, 64, 3)), expected=DECODED, format="png", channels="luma")


def test_no_side(lane):
    """Nothing here is for a device to decode or to encode."""
    deep, options = random_pixels(4, 60, 40, 3, "u16"), {"codec": "gpu", "variant": "general"}
    for body, more in ((write_png(smooth(64, 64, 3)), {"format": "png"}),
                       (deep.tobytes(), {"raw": raw_kind(deep), "format": "jpeg"})):
        answer = lane.post(target_of(GAUSSIAN, **options, **more), body)
        assert answer.status == 200 and by(answer) == "cpu", answer


@pytest.mark.parametrize("answer", ["jpeg", "ppm"])
def test_damaged(lane, answer):
    """Wherever a file is damaged, the answer is the codec worker's: status, bytes and words."""
    good = jpeg(smooth(200, 120, 3), quality=90)
    chance = random.Random(5)
    start = good.index(b"\xff\xda") + 14
    flags = 0
    for trial in range(60):
        body = bytearray(good)
        if trial % 3:
            body[chance.randrange(start, len(good) - 2)] = chance.randrange(256)
        else:
            del body[chance.randrange(start, len(good) - 2):-2]
        device, cpu = (post(lane, bytes(body), codec=codec, format=answer) for codec in ("gpu", "cpu"))
        assert device.status == cpu.status
        if device.status == 200:
            assert device.body == cpu.body
            flags += by(device) == "cpu"
        else:
            assert device.json()["detail"] == cpu.json()["detail"]
    assert left(lane.metrics(), "flag") or flags == 0


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


def post_again(service, body, **options):
    """While the only device is being restarted no request is accepted."""
    def answered():
        answer = post(service, body, **options)
        return b"being restarted" not in answer.body and answer
    return poll(answered, 60, "an answer")


@pytest.mark.parametrize("kind", ("device", "codec"))
def test_worker_dies(lane, kind):
    """The job is done all the same, whichever of its sides are scans."""
    body = jpeg(smooth(1600, 1200, 3))
    jobs = [(body, {}), (body, {"format": "ppm"}), bare(smooth(1600, 1200, 3))]
    wanted = [post(lane, body, codec="cpu", **options).body for body, options in jobs]
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        answers = [clients.submit(post_again, lane, body, **options) for body, options in jobs * 4]
        lane.workers(kind)[0].kill()
        for answer, right in zip(answers, wanted * 4):
            assert answer.result().status == 200 and answer.result().body == right
    poll(lambda: lane.get("/readyz").status == 200, 60, "readiness")


def test_wrong_name(lane):
    post(lane, jpeg(smooth(8, 8, 3)), codec="tpu").refused(400, "bad-parameter")


def test_without(launch):
    """jpeg-memory=0 leaves all to codec workers; and so do devices that are no GPUs, by default."""
    body = jpeg(smooth(64, 64, 3))
    for options in (("--jpeg-on-any", "yes", "--jpeg-memory", "0"), ()):
        with launch(*options, environment=ONE_DEVICE) as service:
            assert by(post(service, body)) == "cpu"
            assert left(service.metrics(), "device", "decode") == 1
            assert not takes_jpeg(service)


def test_too_large(launch, lane):
    """An image beyond a device's share of memory."""
    body = jpeg(smooth(1600, 1200, 3))
    share = (32 << 20) / lane.get("/v1/devices").json()["devices"][0]["memory_bytes"]
    with launch("--jpeg-on-any", "yes", "--jpeg-memory", f"{share:.6f}", environment=ONE_DEVICE) as service:
        ready(service)
        assert by(post(service, body)) == "cpu"
        assert left(service.metrics(), "size", "encode") == 1
        assert by(post(service, jpeg(smooth(64, 64, 3)))) == "cpu0"
    assert read_pil(post(lane, body).body)[0].shape == (1200, 1600, 3)


def test_pixels_beyond_arena(launch):
    """A scan that fits where the pixels of the other side do not."""
    pixels = smooth(1200, 900, 3)
    with launch("--jpeg-on-any", "yes", "--arena-size", "2M", "--verify-share", "0",
                environment=ONE_DEVICE) as service:
        ready(service)
        same(service, jpeg(pixels))
        same(service, jpeg(pixels), expected="cpu", format="ppm")
        assert left(service.metrics(), "arena", "decode") == 1
        body, options = bare(pixels)
        same(service, body, expected="cpu", **options)
        assert left(service.metrics(), "arena", "encode") == 1


def test_answers_in_memory(launch):
    """The memory for a device's encoding is set aside for the encoded size, not for the pixels."""
    body = jpeg(smooth(1600, 1200, 3))
    with launch("--jpeg-on-any", "yes", "--codecs", "1", "--verify-share", "0", "--spool-size", "1M",
                environment=ONE_DEVICE) as service:
        ready(service)
        assert len(body) < 1 << 19
        for codec, place, who in (("gpu", "memory", BOTH), ("cpu", "file", "cpu")):
            assert by(post(service, body, codec=codec)) == who
            service.rest()
            answer = service.post(target_of(GAUSSIAN, codec=codec, variant="general"), body,
                                  headers={"Prefer": "respond-async"})
            assert answer.status == 202
            assert service.get(answer.headers["Location"] + "/result?wait=60").status == 200
            assert service.total("convolved_spools", place=place) == 1
            service.request("DELETE", answer.headers["Location"])
        poll(lambda: service.total("convolved_spool_memory_bytes") == 0, 60, "no memory in use")


def test_compared(launch):
    """With verify-share each is done both ways, and the codec worker's is the answer."""
    pixels = smooth(1200, 900, 3)
    with launch("--jpeg-on-any", "yes", "--verify-share", "1", environment=ONE_DEVICE) as service:
        ready(service)
        for n, (body, options) in enumerate([(jpeg(pixels), {}), (jpeg(pixels), {"format": "ppm"}),
                                             bare(pixels)]):
            same(service, body, expected="cpu", **options)
            assert left(service.metrics(), "check") == (2, 3, 4)[n]
        assert service.total("convolved_device_suspected_total") == 0
