"""Large images on the page: previews, and bars of uploads."""
import functools
import io
import urllib.parse

import numpy as np
import pytest
from PIL import Image

import imagefiles
from fixtures import Made
from test_pages import DONE, NOTHING_SHOWN, judge, judged, proxy, put, save, silent  # noqa

RAMP = np.linspace(0, 255, 2400).astype(np.uint8)
PIXELS = np.stack([np.tile(RAMP, (1600, 1)), np.full((1600, 2400), 90, np.uint8), np.tile(RAMP[:1600, None], (1, 2400))], axis=2)
large = functools.cache(lambda: imagefiles.written(imagefiles.pil(PIXELS), "png"))
MARKED = "((mark) => mark.checkVisibility() && mark.textContent)(document.querySelector('#preview'))"
PREVIEW = f"{DONE} && {MARKED} === 'Preview at 62 %' && document.querySelector('#badges').textContent.startsWith('preview at 62 %')"
UPLOAD = "document.querySelector('.upload progress')"


def start(browser, service, chain, content=None, name="large.png", size="2400 × 1600"):
    browser.open(service)
    browser.wait("document.querySelectorAll('.card').length > 20")
    put(browser, content or large(), name)
    browser.wait("document.querySelector('#name').textContent === arguments[0]", f"{name} · {size}")
    browser.ask("void (location.hash = arguments[0])", chain)


def asked(site, text=""):
    """Returns the posts of the page without those of its cards: (path, parameters, body)."""
    posts = [(*urllib.parse.urlsplit(one.path)[2:4], one.body) for one in site.requests
             if one.command == "POST" and "priority=batch" not in one.path]
    return [(path, dict(urllib.parse.parse_qsl(query)), body) for path, query, body in posts if text in f"{path}?{query}"]


def size_of(body):
    return Image.open(io.BytesIO(body)).size


REAL = "filters=gaussian=sigma=10,box=size=15&regions=240,160,1200,800&feather=100"


def test_a_large_image_is_tried_small(browser, service, judged):
    """And saved whole, with the parameters as given."""
    start(browser, judged, REAL)
    browser.wait(PREVIEW)
    (path, parameters, body), = asked(judged, "resize")
    assert (path, parameters) == ("/v1/filters/resize", {"width": "62%", "format": "png"}) and body == large()
    path, parameters, body = asked(judged)[-1]
    assert (path, size_of(body)) == ("/v1/chain", (1488, 992))
    assert parameters == {"filters": "gaussian=sigma=6.2,box=size=9", "regions": "148,99,745,497", "feather": "62", "format": "png"}
    assert "gaussian=sigma=10,box=size=15&feather=100&regions=240,160,1200,800" in browser.text("#code")
    assert "1488 × 992" in browser.text("#badges") and not browser.ask("document.querySelector('#save').checkVisibility()")

    expected = service.post(f"/v1/chain?{REAL}", large())
    assert save(browser, "#save-whole") == ("large-filtered.png", expected.body)
    assert browser.ask(f"!{MARKED} && document.querySelector('#badges').textContent.startsWith('2400 × 1600')")
    assert save(browser) == ("large-filtered.png", expected.body)
    whole = [body for _, _, body in asked(judged, "chain") if body == large()]
    assert len(whole) == 1

    browser.click(".chip[data-filter=box] .sign")
    browser.wait(PREVIEW)
    path, parameters, body = asked(judged)[-1]
    assert (path, parameters["sigma"], size_of(body)) == ("/v1/filters/gaussian", "6.2", (1488, 992))
    assert len(asked(judged, "resize")) == 1


def test_a_preview_is_in_its_place(browser, service):
    """As large as the whole would be, with its pixels below the pointer."""
    start(browser, service, "filters=invert&roi=1200,800,600,400&format=jpeg&quality=1")
    browser.wait(PREVIEW)
    browser.ask("document.querySelector('#divider').focus()")
    browser.key("Home")
    browser.wait("document.querySelector('#divider').getAttribute('aria-valuenow') === '0'")
    x, y, width, height = browser.box("#canvas")
    scale = min(width / 2400, height / 1600)
    left, top = x + (width - 2400 * scale) / 2, y + (height - 1600 * scale) / 2
    for across, down, inside in ((1190, 900, False), (1250, 850, True), (1750, 1150, True), (1820, 900, False)):
        browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=left + across * scale, y=top + down * scale)
        _, _, before, *after = browser.wait("((text) => text && text.split(/ {2,}|, /))(document.querySelector('#pixel').textContent)")
        assert bool(after) == inside
        if inside:
            values = [int(v) for v in (before + " " + after[-1].replace("→", "")).split()]
            assert np.allclose(255 - np.array(values[:3]), values[3:], atol=2), values


def test_no_preview(browser, judged):
    """A small image is filtered as it is, and a large one by parameters that are for it alone."""
    small = imagefiles.written(imagefiles.pil(PIXELS[:1000, :1500]), "png")
    start(browser, judged, "filters=box=size=15", small, "small.png", "1500 × 1000")
    browser.wait(DONE)
    assert asked(judged)[-1] == ("/v1/filters/box", {"size": "15"}, small)
    put(browser, large(), "large.png")
    browser.wait(PREVIEW)
    browser.ask("void (location.hash = 'filters=box=size=15&variant=general')")
    browser.wait(f"{DONE} && !{MARKED}")
    assert asked(judged)[-1] == ("/v1/filters/box", {"size": "15", "variant": "general"}, large())


def test_a_whole_image_that_is_refused(browser, service, judged, judge):
    """The page says so, and saves it when it is tried again."""
    start(browser, judged, "filters=box=size=15")
    browser.wait(PREVIEW)
    judge.refuse, judge.answer = "size=15", (503, {"Content-Type": "text/plain"}, b"no")
    browser.click("#save-whole")
    browser.wait("document.querySelector('#problem:not([hidden])')")
    assert browser.ask(NOTHING_SHOWN) and not browser.ask("document.querySelector('#save-whole').checkVisibility()")
    judge.refuse = None
    assert save(browser, "#problem button") == ("large-filtered.png", service.post("/v1/filters/box?size=15", large()).body)


def test_who_asks_for_something_else_saves_nothing(browser, judged, judge):
    """A wish to save one result does not save another."""
    start(browser, judged, "filters=box=size=15")
    browser.wait(PREVIEW)
    judge.hold = "size=15"
    browser.ask("HTMLAnchorElement.prototype.click = () => { throw new Error('saved'); }")
    browser.click("#save-whole")
    assert judge.held.wait(60)
    judge.hold = None
    put(browser, imagefiles.written(imagefiles.pil(PIXELS[:30, :40]), "png"), "small.png")
    browser.wait(f"{DONE} && document.querySelector('#save').download === 'small-filtered.png'")


FILES = Made({  # the first one is turned to the left; 6 turns it to the right
    "a.jpg": lambda: imagefiles.written(imagefiles.pil(np.rot90(PIXELS)), "jpeg", exif=imagefiles.exif({274: 6})),
    "16.png": lambda: imagefiles.write_png(PIXELS.astype(np.uint16) * 257),
    "alpha.png": lambda: imagefiles.written(imagefiles.pil(np.dstack([PIXELS, PIXELS[:, :, 0]])), "png"),
    "float.tif": lambda: imagefiles.written(Image.fromarray(PIXELS[:, :, 0] / np.float32(255)), "tiff", compression="tiff_deflate"),
    "pages.tif": lambda: imagefiles.several([imagefiles.pil(PIXELS)] * 2, "tiff", compression="tiff_deflate")})


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_files(browser, judged, name):
    """Upright, with their bits and their alpha; the first page of several."""
    start(browser, judged, "filters=invert", FILES[name], name)
    browser.wait(PREVIEW)
    body = asked(judged)[-1][2]
    image = Image.open(io.BytesIO(body))
    assert (image.size, image.getexif().get(274, 1)) == ((1488, 992), 1)
    assert (image.format, image.mode) == {"alpha.png": ("PNG", "RGBA"), "float.tif": ("TIFF", "F")}.get(name, ("PNG", "RGB"))
    assert image.format == "TIFF" or body[24] == (16 if name == "16.png" else 8)
    pixels = np.asarray(image).reshape(992, 1488, -1)[::62, ::62, 0] / (1 if image.mode == "F" else 255)
    assert np.allclose(pixels, PIXELS[::100, ::100, 0] / 255, atol=0.03)


AT_SCALE = """const { previewOf } = await import('/page/preview.js'), { parseFragment, requestOf } = await import('/page/chain.js');
    const { filters, common } = await (await fetch('/v1/filters')).json(), [texts, percent] = arguments;
    const catalogue = { filters: new Map(filters.map((filter) => [filter.name, filter])), common };
    const image = { width: 2000, height: 1000 }, small = { width: 20 * percent, height: 10 * percent };
    return texts.map((text) => requestOf(previewOf({ ...parseFragment(text), catalogue, image }, small)).target.replace(/[?&]format=png/, ''));"""


@pytest.mark.parametrize("percent, text, expected", [
    (40, "box=size=15", "box?size=7"), (40, "box=size=3", "box?size=3"), (40, "box=size=1", "box?size=1"), (1, "box=size=601", "box?size=7"),
    (40, "box", "box?size=3"), (40, "box=size=4", "box?size=4"), (40, "box=size=603", "box?size=603"), (1, "threshold=size=9", "threshold?size=3"),
    (40, "gaussian=sigma=10", "gaussian?sigma=4"), (40, "gaussian=sigma=1%", "gaussian?sigma=1%25"), (1, "gaussian=sigma=3", "gaussian?sigma=0.1"),
    (40, "gaussian=sigma=200", "gaussian?sigma=200"), (40, "gaussian=sigma=x", "gaussian?sigma=x"), (40, "gaussian", "gaussian"),
    (40, "pixelate", "pixelate?size=6"), (40, "median=radius=1", "median?radius=1"), (40, "convolve=kernel=1 2 1:offset=9", "convolve?kernel=1,2,1&offset=9"),
    (40, "resize=width=50%:height=500", "resize?width=50%25&height=200"), (40, "none=size=9", "none?size=9"), (40, "gamma", "gamma"),
    (40, "&luma=box=size=15,invert&quality=9&border=wrap", "chain?luma=box=size=7,invert&border=wrap"),
    (40, "invert&regions=-5,0,9,999;ellipse:1990,990,10,10&feather=5&roi=0,0,2000,1000",
     "invert?feather=2&regions=-2,0,4,400;ellipse:796,396,4,4&roi=0,0,800,400"),
    (40, "invert&regions=polygon:10,10+90,10+30,91;polygon-nonzero:-1,-1+1000,30+20,999",
     "invert&regions=polygon:4,4+36,4+12,37;polygon-nonzero:-1,-1+400,12+8,400"),
    (1, "invert&regions=polygon:0,0+30,31+100,100;polygon:0,0+30,30+100,100", "invert&regions=0,0,1,1;polygon:0,0+0,0+1,1"),
    (40, "invert&regions=polygon:1,2+3,+4", "invert&regions=polygon:1,1+2,NaN+NaN,NaN"),
    (40, "invert&regions=1,2,3&feather=x", "invert?feather=x&regions=NaN,NaN,NaN,NaN")])
def test_lengths(browser, service, percent, text, expected):
    """By units; values that are refused stay so."""
    if not browser.driver.current_url.startswith(service.url + "/docs"):
        browser.open(service, "/docs")
    target, = browser.run(AT_SCALE, ["filters=" + text], percent)
    assert target.removeprefix("v1/").removeprefix("filters/") == expected


def test_lengths_stay_valid(browser, service):
    """At any scale, those of all filters."""
    texts = [f"filters={one['name']}={p['name']}={value}" for one in service.get("/v1/filters").json()["filters"]
             for p in one["parameters"] if p.get("unit", "").startswith("pixels") and one["name"] != "resize"
             for value in (p["minimum"], min(p["maximum"], 101)) for value in [value if p["type"] == "number" else int(value)]]
    small = imagefiles.write_png(PIXELS[:4, :4])
    assert len(texts) > 40
    browser.open(service, "/docs")
    for percent in (1, 37, 99):
        for text, target in zip(texts, browser.run(AT_SCALE, texts, percent)):
            if service.post("/v1/chain?" + text, small).status == 200:
                assert service.post("/" + target, small).status == 200, (text, target)


@pytest.fixture
def slow(browser):
    """slow(on): the browser sends 20 kB a second, or as fast as it can."""
    def set_speed(on):
        browser.command("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=20000 if on else -1)
    browser.command("Network.enable")
    yield set_speed
    set_speed(False)
    browser.command("Network.disable")


NOISE = imagefiles.write_png(np.random.default_rng(1).integers(0, 256, (160, 240, 3), np.uint8))  # 115 kB


def open_noise(browser, service, name="noise.png"):
    browser.open(service)
    browser.wait("document.querySelectorAll('.card').length > 20")
    browser.ask("void (location.hash = 'filters=invert')")
    assert not browser.ask(UPLOAD)


def test_a_slow_upload_has_a_bar(browser, service, slow):
    open_noise(browser, service)
    slow(True)
    put(browser, NOISE, "noise.png")
    first = browser.wait(f"{UPLOAD}?.value")
    browser.wait(f"{UPLOAD}.value > arguments[0]", first)
    bars = [node for node in browser.command("Accessibility.getFullAXTree")["nodes"]
            if node.get("role", {}).get("value") in ("progressbar", "ProgressIndicator") and not node.get("ignored")]
    assert [bar["name"]["value"] for bar in bars] == ["Uploading"]
    slow(False)
    browser.wait(f"!{UPLOAD} && {DONE}")
    assert save(browser) == ("noise-filtered.png", service.post("/v1/filters/invert", NOISE).body)


def test_an_upload_that_is_cancelled(browser, judged, slow):
    """Its bar goes, and it does not arrive; the next one does."""
    open_noise(browser, judged)
    slow(True)
    put(browser, NOISE, "noise.png")
    browser.wait(f"{UPLOAD}?.value")
    browser.ask("void (location.hash = 'filters=invert,box')")
    browser.wait("document.querySelector('#code').textContent.includes('invert,box')")
    slow(False)
    browser.wait(f"!{UPLOAD} && {DONE}")
    assert [path for path, _, body in asked(judged) if body == NOISE] == ["/v1/chain"]
    assert browser.ask("document.querySelector('#problem').hidden")


def test_the_upload_of_a_large_image_goes_on(browser, judged, slow):
    """While parameters change; only for another image it ends."""
    noisy = np.array(PIXELS)
    noisy[:160, :240] = np.random.default_rng(1).integers(0, 256, (160, 240, 3))
    noisy = imagefiles.written(imagefiles.pil(noisy), "png")
    start(browser, judged, "", noisy)
    slow(True)
    browser.ask("void (location.hash = 'filters=box=size=15')")
    browser.wait(f"{UPLOAD}?.value")
    browser.ask("void (location.hash = 'filters=box=size=31')")
    browser.wait("document.querySelector('#code').textContent.includes('size=31')")
    assert browser.ask(UPLOAD)
    slow(False)
    browser.wait(PREVIEW)
    assert len(asked(judged, "resize")) == 1 and [p["size"] for _, p, _ in asked(judged, "box")] == ["19"]

    slow(True)
    put(browser, noisy, "again.png")
    browser.wait("document.querySelector('#name').textContent.startsWith('again.png')")
    browser.wait(f"{UPLOAD}?.value")
    put(browser, imagefiles.written(imagefiles.pil(PIXELS[:30, :40]), "png"), "small.png")
    browser.wait("document.querySelector('#name').textContent.startsWith('small.png')")
    slow(False)
    browser.wait(f"!{UPLOAD} && {DONE} && !{MARKED}")
    assert [body for _, _, body in asked(judged, "resize") if body == noisy] == [noisy]
