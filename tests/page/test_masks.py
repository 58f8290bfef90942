"""Masks on the page: painted, read from files, sent, saved."""
import io
import os
import re
import subprocess
import urllib.parse

import numpy as np
import pytest
from PIL import Image

import imagefiles
from service import BUILD, ONE_DEVICE, REPOSITORY
from test_layout import IN_SIGHT, OUTSIDE, PHONES
from test_pages import (COLOUR, DONE, NEGATIVE, PIXEL, PNG, fragment, give, judge, judged, proxy, put, save, silent, spot,  # noqa
                        start, wait_fragment, wait_pixel)
from test_previews import MARKED

MAY_SAVE = "!document.querySelector('#mask-save').disabled"
CHOOSE = "const input = document.querySelector('#mask-file'); input.files = data.files; input.dispatchEvent(new Event('change'))"
PIXELS, _ = imagefiles.read_pil(PNG)


def choose_paint(browser, width=40, height=30):
    """The brush comes with controls, beside which the image fits anew. Returns its scale."""
    browser.click("#tools [data-tool=paint]")
    _, _, *stage = browser.box("#canvas")
    scale = min(stage[0] / width, stage[1] / height)
    browser.wait("Math.abs(parseInt(document.querySelector('#zoom').textContent) - arguments[0]) < 2", 100 * scale)
    return scale


def paint(browser, *points, size=None, softness=0):
    """A stroke along points of the image, each (across, down)."""
    choose_paint(browser)
    browser.fill("#brush-softness", softness, "input")
    if size:
        browser.fill("#brush-size", size, "input")
    x, y, *_ = browser.box("#canvas")
    browser.drag([(x + left, y + top) for left, top in (spot(browser, *point) for point in points)])
    browser.wait(f"{DONE} && {MAY_SAVE}")


def mask_of(browser):
    """Returns the mask that the page saves: the file, and its values."""
    name, body = save(browser, "#mask-save")
    assert name == "mask.png"
    image = Image.open(io.BytesIO(body))
    assert image.mode == "L" and not image.info
    return body, np.asarray(image)


def assert_masked(browser, service, target="/v1/filters/invert", image=PNG):
    """The result is that of the service for the saved mask. Returns its values."""
    mask, values = mask_of(browser)
    browser.wait(DONE)
    answer = service.post_masked(image, mask, target)
    assert answer.status == 200 and save(browser)[1] == answer.body
    return values


def test_painted(browser, service):
    """It is seen on the image, and the result is changed where it was painted, and nowhere else."""
    start(browser, service)
    x, y = spot(browser, 0.75)
    before = browser.ask(PIXEL, x, y)
    paint(browser, (0.25, 0.5), (0.75, 0.5), (0.75, 0.7), size=80)
    x, y = spot(browser, 0.75)
    browser.wait(f"((p, q) => p[0] > q[0] && p[2] < q[2])({PIXEL}, arguments[2])", x, y, before, what="the mask on the image")
    values = assert_masked(browser, service)
    assert values.shape == (30, 40) and (values[14:16, 10:31] == 255).all() and (values[19, 29:31] == 255).all()
    assert not values[:8].any() and not values[:, :4].any() and not values[23, :24].any()
    result, _ = imagefiles.read_pil(save(browser)[1])
    assert (result[values == 255] == NEGATIVE).all() and (result[values == 0] == COLOUR).all()
    browser.click("#tools [data-tool=compare]")
    wait_pixel(browser, 0.75, NEGATIVE, 0.6)
    wait_pixel(browser, 0.95, COLOUR)
    browser.click("#invert")
    browser.wait(f"location.hash.includes('invert=1') && {DONE}")
    wait_pixel(browser, 0.95, NEGATIVE)
    wait_pixel(browser, 0.75, COLOUR, 0.6)
    assert (assert_masked(browser, service, "/v1/filters/invert?invert=1") == values).all()
    browser.click("[data-new=rectangle]")
    browser.wait("location.hash.includes('regions')")
    browser.click("#shape-0-remove")
    wait_fragment(browser, "#filters=invert&invert=1")
    browser.click("#mask-clear")
    wait_fragment(browser, "#filters=invert")


def test_soft(browser, service):
    """From the middle to the rim, and strokes that cross add nothing."""
    start(browser, service)
    paint(browser, (0.5, 0.2), (0.5, 0.8), size=240, softness=100)
    values = assert_masked(browser, service).astype(int)
    row = values[15]
    assert row[20] > 225 and len(set(row)) > 10 and (np.diff(row[:20]) >= 0).all() and (np.diff(row[20:]) <= 0).all() and row[0] == 0
    paint(browser, (0.5, 0.2), (0.5, 0.8), (0.5, 0.2), size=240, softness=100)
    assert (mask_of(browser)[1] == values).all()


def test_erased_and_undone(browser, service):
    """By the button and by its key; nothing is painted means that all is filtered."""
    start(browser, service)
    plain = save(browser)[1]
    assert browser.ask(f"!({MAY_SAVE}) && document.querySelector('#undo').disabled")
    paint(browser, (0.2, 0.5), (0.8, 0.5), size=80)
    painted = mask_of(browser)[1]
    browser.click("#erase")
    paint(browser, (0.5, 0.5), (0.5, 0.5))
    erased = assert_masked(browser, service)
    assert not erased[14:16, 19:21].any() and (erased <= painted).all() and (erased[:, :12] == painted[:, :12]).all()
    browser.click("#undo")
    assert (assert_masked(browser, service) == painted).all()
    browser.click("#mask-clear")
    browser.wait(f"{DONE} && !({MAY_SAVE})")
    assert save(browser)[1] == plain
    browser.ask("dispatchEvent(new KeyboardEvent('keydown', {key: 'z', ctrlKey: true, cancelable: true}))")
    browser.wait(f"{DONE} && {MAY_SAVE}")
    assert (assert_masked(browser, service) == painted).all()
    browser.click("#undo")
    browser.wait(f"{DONE} && !({MAY_SAVE}) && document.querySelector('#undo').disabled")
    paint(browser, (0.5, 0.5), (0.5, 0.5))  # still the eraser, and there is no mask
    erased = assert_masked(browser, service)
    assert erased[15, 20] == 0 and erased[0, 0] == 255


def load(browser, content, name="mask.png"):
    put(browser, content, name, CHOOSE)


def test_loaded(browser, service):
    """A mask as large as the image keeps its values, others are stretched to it; files that only the service
    reads come by it."""
    start(browser, service)
    ramp = np.linspace(0, 255, 1200).astype(np.uint8).reshape(30, 40, 1)
    for content, name in ((imagefiles.write_png(ramp), "m.png"), (imagefiles.written(imagefiles.pil(255 - ramp), "tiff"), "m.tif")):
        load(browser, content, name)
        browser.wait(f"{DONE} && {MAY_SAVE}")
        assert (assert_masked(browser, service) == (ramp if name == "m.png" else 255 - ramp)[..., 0]).all()
    assert save(browser)[1] == service.post_masked(PNG, imagefiles.write_png(255 - ramp), "/v1/filters/invert").body
    load(browser, imagefiles.written(imagefiles.pil(np.full((3, 4, 3), (255, 0, 0), np.uint8)), "png"))
    browser.wait(f"{DONE} && !document.querySelector('#name').textContent.startsWith('Opening')")
    assert (assert_masked(browser, service) == 76).all()  # luma
    paint(browser, (0.5, 0.5), (0.5, 0.5), size=80)  # and on it
    assert {76, 255} <= set(assert_masked(browser, service).flat)


def test_of_a_part(browser, service):
    """The mask that is sent covers the part, and so does a file."""
    start(browser, service, chain="invert&roi=10,6,20,12")
    left = np.zeros((12, 20), np.uint8)
    left[:, :7] = 255
    load(browser, imagefiles.write_png(left[..., None]))
    browser.wait(f"{DONE} && {MAY_SAVE}")
    assert (assert_masked(browser, service, "/v1/filters/invert?roi=10,6,20,12") == left).all()
    for wrong in "10,6,,12", "10,6,-20,12", "10,6,99999999,12":
        browser.ask("void (location.hash = arguments[0])", f"filters=invert&roi={wrong}")
        browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('roi')")
        browser.ask("void (location.hash = 'filters=invert')")
        browser.wait(f"{DONE} && document.querySelector('#badges').textContent.includes('40 × 30')")
    values = assert_masked(browser, service)
    assert (values[6:18, 10:17] == 255).all() and values.sum() == 255 * 12 * 7


def test_refused(browser, service):
    """In words, at the mask: what the service says of a request, and a file that is no mask, which changes nothing."""
    start(browser, service)
    paint(browser, (0.2, 0.5), (0.8, 0.5))
    values = mask_of(browser)[1]
    wrong = "document.querySelector('[data-parameter=mask]').classList.contains('wrong') && document.querySelector('#problem:not([hidden])')?.textContent.includes(arguments[0])"
    browser.ask("void (location.hash = 'filters=invert,resize=width=20')")
    browser.wait(wrong, "expected a request without resize")
    browser.ask("void (location.hash = 'filters=invert')")
    browser.wait(f"{DONE} && !document.querySelector('.wrong')")
    load(browser, imagefiles.written(imagefiles.pil(np.dstack([PIXELS, PIXELS[:, :, 0]])), "png"))
    browser.wait(wrong, "without alpha")
    browser.click("#problem button")
    browser.wait(f"{DONE} && !document.querySelector('.wrong')")
    load(browser, b"text", "b.txt")
    browser.wait("document.querySelector('#problem:not([hidden])')")
    browser.click("#problem button")
    browser.wait(DONE)
    assert (assert_masked(browser, service) == values).all()


def parts(body):
    """Returns the files of a form, in turn."""
    return {name.decode(): content for name, content in
            re.findall(rb'name="(\w+)"[^\r]*\r\n(?:Content-Type[^\r]*\r\n)?\r\n(.*?)\r\n(?=-----)', body, re.S)}


def test_of_a_large_image(browser, service, judged):
    """A preview has a mask of its size; one of the whole image has a bounded size."""
    large = imagefiles.written(imagefiles.pil(np.full((2000, 3000, 3), COLOUR, np.uint8)), "png")
    browser.open(judged)
    browser.wait("document.querySelectorAll('.card').length > 20")
    put(browser, large, "large.png")
    browser.wait("document.querySelector('#name').textContent.startsWith('large.png')")
    browser.ask("void (location.hash = 'filters=invert')")
    browser.wait(f"{DONE} && {MARKED}")
    scale = 2 * choose_paint(browser, 3000, 2000)
    browser.fill("#brush-size", 100, "input")
    browser.fill("#brush-softness", 0, "input")
    browser.click("#in")  # zoomed in, the brush is half as large on the image
    browser.drag([browser.middle("#canvas")] * 2)
    browser.wait(f"{DONE} && {MARKED}")
    sent = parts([one for one in judged.requests if one.command == "POST"][-1].body)
    small, mask = (Image.open(io.BytesIO(sent[name])) for name in ("image", "mask"))
    assert list(sent) == ["image", "mask"] and small.size == mask.size and small.width < 1501
    values = np.asarray(mask)
    across = (values > 127).any(axis=0).sum() / small.width * 3000
    assert np.isclose(across, 100 / scale, rtol=0.05) and values[small.height // 2, small.width // 2] == 255 and values[0, 0] == 0

    browser.ask("void (location.hash = 'filters=invert&roi=600,400,1500,1000')")
    browser.wait(f"{DONE} && {MARKED} && document.querySelector('#code').textContent.includes('roi')")
    post = [one for one in judged.requests if one.command == "POST"][-1]
    size = tuple(int(n) for n in re.search(r"roi=\d+,\d+,(\d+),(\d+)", urllib.parse.unquote(post.path)).groups())
    part = Image.open(io.BytesIO(parts(post.body)["mask"]))
    assert part.size == size and np.asarray(part)[:, size[0] * 3 // 5].any() and size[0] < 760
    browser.ask("void (location.hash = 'filters=invert')")
    browser.wait(f"{DONE} && {MARKED} && !document.querySelector('#code').textContent.includes('roi')")

    target, values = "/v1/filters/invert", mask_of(browser)
    assert 2 ** 21 < values[1].size <= 2 ** 22
    assert save(browser, "#save-whole") == ("large-filtered.png", service.post_masked(large, values[0], target).body)
    assert parts([one for one in judged.requests if one.command == "POST"][-1].body) == {"image": large, "mask": values[0]}


def touch(browser, kind, *points):
    browser.command("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)])


@pytest.mark.parametrize("width, height", PHONES)
def test_by_touch(browser, service, width, height):
    """On a phone one finger paints, and two zoom and paint nothing."""
    start(browser, service, width=width, height=height, phone=True)
    scale = choose_paint(browser)
    assert browser.ask(OUTSIDE, width) == [0] and all(browser.ask(IN_SIGHT, one) for one in ("#erase", "#brush-size", "#brush-softness", "#undo", "#canvas"))
    middle = browser.middle("#canvas")
    touch(browser, "touchStart", middle)
    touch(browser, "touchStart", middle, (middle[0] + 30, middle[1]))
    touch(browser, "touchMove", (middle[0] - 20, middle[1]), (middle[0] + 60, middle[1]))
    touch(browser, "touchEnd")
    browser.wait("parseInt(document.querySelector('#zoom').textContent) > arguments[0]", 150 * scale)
    browser.wait(DONE)
    assert not browser.ask(MAY_SAVE)
    browser.click("#fit")
    touch(browser, "touchStart", middle)
    touch(browser, "touchMove", (middle[0] + 50, middle[1]))
    touch(browser, "touchEnd")
    browser.wait(f"{DONE} && {MAY_SAVE}")
    values = assert_masked(browser, service)
    assert values[15, 20] == values[15, round(20 + 50 / scale)] == 255 and values[15, 1] == 0


def test_by_keys(browser, service):
    """Keys on the image change the brush; all else has names, and is pressed."""
    start(browser, service)
    choose_paint(browser)
    browser.ask("document.querySelector('#canvas').focus()")
    size = int(browser.ask("document.querySelector('#brush-size').value"))
    browser.key("]")
    browser.wait("Number(document.querySelector('#brush-size').value) === arguments[0]", round(size * 1.25))
    for _ in range(30):
        browser.key("[")
    browser.wait("Number(document.querySelector('#brush-size').value) === 2")
    assert browser.nameless() == []


def test_it_belongs_to_its_image(browser, launch):
    """Another image, or a preset, has no mask; with one, a preset's chain is asked for as a chain."""
    with launch("--preset", "neg=invert", environment=ONE_DEVICE) as service:
        start(browser, service)
        assert "/v1/presets/neg" in browser.text("#code")
        paint(browser, (0.2, 0.5), (0.8, 0.5))
        assert "/v1/filters/invert" in browser.text("#code") and fragment(browser) == "#filters=invert"
        assert_masked(browser, service)
        browser.click(".group:first-child .card")
        browser.wait(f"{DONE} && !({MAY_SAVE}) && document.querySelector('#code').textContent.includes('presets/neg')")
        browser.click("#undo")
        browser.wait(f"{DONE} && {MAY_SAVE}")
        give(browser, name="b.png")
        browser.wait(f"{DONE} && !({MAY_SAVE}) && document.querySelector('#undo').disabled")


def test_code(browser, service, tmp_path):
    """Each of the commands gets the same answer."""
    name = 'a;b "c", \'d\'.png'
    pairs = "border=reflect&luma=box=size=3,invert&regions=4,6,16,18;polygon:20,1 39,9 25,25"
    browser.open(service)
    browser.wait("document.querySelectorAll('.card').length > 20")
    give(browser, name=name)
    browser.ask("void (location.hash = arguments[0])", f"filters=gaussian=sigma=2,convolve=kernel=1 2 1&{pairs}")
    browser.wait(DONE)
    paint(browser, (0.2, 0.5), (0.8, 0.5), size=90, softness=60)
    mask, _ = mask_of(browser)
    (tmp_path / name).write_bytes(PNG)
    (tmp_path / "mask.png").write_bytes(mask)
    expected = service.post_masked(PNG, mask, f"/v1/chain?filters=gaussian=sigma=2,convolve=kernel=1+2+1&{pairs.replace(' ', '+')}")
    assert expected.status == 200 and save(browser)[1] == expected.body
    for language, command in (("curl", ["sh", "-c"]), ("convolve", ["sh", "-c"]), ("Python", ["/usr/bin/python3", "-c"])):
        browser.click(f"#tab-{language}")
        browser.wait("document.querySelector(arguments[0]).getAttribute('aria-selected') === 'true'", f"#tab-{language}")
        subprocess.run([*command, browser.text("#code")], cwd=tmp_path, check=True, timeout=120, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY / "client/python")})
        assert (tmp_path / "out.png").read_bytes() == expected.body, language
        (tmp_path / "out.png").unlink()
    browser.click("#tab-JavaScript")
    browser.wait("document.querySelector('#code').textContent.includes('await service')")
    code = re.sub(r"^import (\{.*\}) from (.*);$", r"const \1 = await import(\2);", browser.text("#code"), flags=re.M)
    assert browser.run(f"const [image, mask] = [...arguments].map((bytes) => new Blob([new Uint8Array(bytes)])); {code} return bytesOf(blob);",
                       list(PNG), list(mask)) == list(expected.body)
