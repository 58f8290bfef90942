"""The pages in a browser, by what somebody sees and does."""
import base64
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.parse

import numpy as np
import pytest

import imagefiles
from jobs import PREFER
from service import BUILD, ONE_DEVICE, poll

COLOUR = (200, 100, 50)
PNG = imagefiles.write_png(np.full((30, 40, 3), COLOUR, np.uint8))
DONE = "document.querySelector('#waterfall tbody tr') && document.querySelector('#busy').hidden"
PIXEL = ("((at, x, y) => { const c = document.querySelector('#canvas'), k = c.width / c.clientWidth;"
         " return [...c.getContext('2d').getImageData(x * k, y * k, 1, 1).data].slice(0, 3); })(null, arguments[0], arguments[1])")


@pytest.fixture(autouse=True)
def silent(browser):
    """No script may fail, and nothing may be asked for that the policy forbids."""
    browser.complaints()
    yield
    assert [line for line in browser.complaints() if "Failed to load resource" not in line] == []


def fragment(browser):
    return urllib.parse.unquote(browser.ask("location.hash"))


def wait_fragment(browser, text):
    browser.wait("decodeURIComponent(location.hash) === arguments[0]", text, what=f"{text} instead of {fragment(browser)}")


DROP = "dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true, bubbles: true}))"


def put(browser, content, name, event=DROP):
    """Gives a file to the page: dropped, pasted or chosen."""
    browser.ask("((file) => { const data = new DataTransfer(); data.items.add(file); " + event + "})"
                "(new File([Uint8Array.fromBase64(arguments[0])], arguments[1]))", base64.b64encode(content).decode(), name)


def give(browser, event=DROP, name="a.png"):
    """Gives the image to the page, and waits until it is there."""
    put(browser, PNG, name, event)
    browser.wait("document.querySelector('#name').textContent === arguments[0]", f"{name} · 40 × 30")


def start(browser, service, chain="invert", **window):
    """The page with the plain image and a chain."""
    browser.open(service, **window)
    browser.wait("document.querySelectorAll('.card').length > 20")
    give(browser)
    if chain:
        browser.ask("void (location.hash = arguments[0])", f"filters={chain}")
        browser.wait(DONE)
    if chain == "invert":  # others leave a plain image as it is
        wait_pixel(browser, 0.75, NEGATIVE)


def spot(browser, across, down=0.5):
    """Returns a point of the stage: shares of the image, which is shown as large as it fits."""
    _, _, width, height = browser.box("#canvas")
    scale = min(width / 40, height / 30)
    return (width - 40 * scale) / 2 + across * 40 * scale, (height - 30 * scale) / 2 + down * 30 * scale


def wait_pixel(browser, across, colour, down=0.5):
    x, y = spot(browser, across, down)
    browser.wait(f"((p, c) => p.every((v, i) => v === c[i]))({PIXEL}, arguments[2])", x, y, list(colour), what=f"{colour} at {across}, {down}")


NEGATIVE = tuple(255 - v for v in COLOUR)


def test_images_come_in(browser, service, pictures):
    """Dropped, pasted, chosen, or a sample; the cards then show what they make of it."""
    browser.open(service)
    browser.wait("document.querySelectorAll('.card').length > 20")
    assert not browser.ask("document.querySelector('#empty').hidden")
    give(browser)
    assert browser.ask("document.querySelector('#empty').hidden")
    give(browser, "dispatchEvent(new ClipboardEvent('paste', {clipboardData: data}))", "b.png")
    give(browser, "const input = document.querySelector('#file'); input.files = data.files; input.dispatchEvent(new Event('change'))",
         "c.png")
    browser.wait("document.querySelector('.card.seen')")
    browser.click("[data-sample=rings]")
    browser.wait("document.querySelector('#name').textContent === 'rings.png · 960 × 640'")
    wait_fragment(browser, "#sample=rings")


def test_filter_and_compare(browser, service):
    start(browser, service)
    wait_pixel(browser, 0.25, COLOUR)
    wait_pixel(browser, 0.75, NEGATIVE)
    browser.ask("document.querySelector('#divider').focus()")
    browser.key("Home")
    wait_pixel(browser, 0.25, NEGATIVE)
    browser.key("End")
    wait_pixel(browser, 0.75, COLOUR)
    x, y, width, height = browser.box("#canvas")
    browser.drag([(x + width / 2, y + 9), (x + width * 0.6, y + 9), (x + width * 0.1, y + 9)])
    wait_pixel(browser, 0.25, NEGATIVE)
    assert browser.ask("document.querySelector('#divider').getAttribute('aria-valuenow')") == "10"
    browser.click("#in")
    browser.wait("parseInt(document.querySelector('#zoom').textContent) > 1500")
    browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x + width / 2, y=y + height / 2)
    browser.wait("document.querySelector('#pixel').textContent.includes('200 100 50  →  55 155 205')")
    browser.click("#one")
    browser.wait("document.querySelector('#zoom').textContent === '100 %'")


def test_chain(browser, service):
    """Cards add, sliders change, chips are dragged, moved by keys and removed; the address has it all."""
    start(browser, service, chain="")
    browser.click(".card[data-filter=box]")
    wait_fragment(browser, "#filters=box")
    browser.fill("#parameters input[type=range]", "500", "input")
    browser.wait("/^#filters=box=size=\\d*[13579]$/.test(location.hash)")
    browser.click(".card[data-filter=sobel]")
    browser.click("#parameters input[value=x]")
    browser.wait("location.hash.endsWith(',sobel=output=x')")
    browser.fill("#search", "histogram", "input")
    assert browser.ask("[...document.querySelectorAll('.card')].filter(c => c.checkVisibility()).map(c => c.dataset.filter)") == ["equalize"]
    browser.drag([browser.middle(".chip[data-filter=sobel] .grip"), browser.middle(".chip[data-filter=box]"), browser.middle(".chip:first-child")])
    browser.wait("location.hash.startsWith('#filters=sobel=output=x,box=')")
    browser.ask("document.querySelector('.chip[data-filter=sobel] .grip').focus()")
    browser.key("ArrowRight")
    browser.wait("location.hash.startsWith('#filters=box=')")
    browser.click(".chip[data-filter=box] .sign")
    wait_fragment(browser, "#filters=sobel=output=x")
    browser.wait(DONE)
    link = fragment(browser)
    browser.open(service, "/" + link)
    browser.wait("document.querySelector('.chip[data-filter=sobel]')")
    browser.wait("document.querySelector('#parameters input[value=x]')?.checked")


@pytest.mark.slow
def test_matrix_and_border(browser, service):
    start(browser, service, chain="convolve=kernel=0 0 0;0 1 0;0 0 0")
    wait_pixel(browser, 0.25, COLOUR)
    browser.fill("#p-convolve-kernel-1-1", "2", "input")
    wait_fragment(browser, "#filters=convolve=kernel=0+0+0;0+2+0;0+0+0")  # the scale is the sum: nothing changes
    browser.ask("[...document.querySelectorAll('.matrix-editor button')].find(b => b.textContent === '5 × 5').click()")
    browser.wait("document.querySelectorAll('.matrix input').length === 25")
    browser.ask("[...document.querySelectorAll('.presets button')].find(b => b.textContent === 'Mean').click()")
    browser.click("#borders input[value=constant]")
    browser.fill("#border-value", "255")
    wait_fragment(browser, "#filters=convolve=kernel=1+1+1;1+1+1;1+1+1&border=constant&border_value=255")
    edge = tuple(int(np.rint((2 * v + 255) / 3)) for v in COLOUR)
    wait_pixel(browser, 0.99, edge)
    browser.click("#borders input[value=crop]")
    browser.wait("document.querySelector('#badges').textContent.includes('38 × 28 × 3')")


def test_regions(browser, service):
    """Drawn, moved by their numbers, removed; a part is answered alone."""
    start(browser, service)
    browser.ask("document.querySelector('#divider').focus()")
    browser.key("Home")
    browser.click("#tools [data-tool=rectangle]")
    x, y, *_ = browser.box("#canvas")
    (left, top), (right, bottom) = spot(browser, 0.5, 0.2), spot(browser, 0.9, 0.8)
    browser.drag([(x + left, y + top), (x + right - 20, y + bottom), (x + right, y + bottom)])
    wait_fragment(browser, "#filters=invert&regions=20,6,16,18")
    wait_pixel(browser, 0.7, NEGATIVE)
    wait_pixel(browser, 0.3, COLOUR)
    browser.fill("#shape-0-x", "4")
    wait_fragment(browser, "#filters=invert&regions=4,6,16,18")
    wait_pixel(browser, 0.3, NEGATIVE)
    browser.click("#invert")
    wait_pixel(browser, 0.7, NEGATIVE)
    browser.click("#shape-0-remove")
    browser.click("[data-new=roi]")
    browser.wait("document.querySelector('#badges').textContent.includes('16 × 12 × 3')")
    wait_pixel(browser, 0.5, NEGATIVE)


def click(browser, across, down):
    """A click on a point of the image."""
    (left, top), (x, y, *_) = spot(browser, across, down), browser.box("#canvas")
    browser.drag([(x + left, y + top), (x + left, y + top)])


def test_polygons(browser, service):
    """A click is a corner; the first corner, a double click and Enter close a polygon, Escape drops it.
    Corners can be moved, and the whole."""
    start(browser, service)
    browser.ask("document.querySelector('#divider').focus()")
    browser.key("Home")
    browser.click("#tools [data-tool=polygon]")
    x, y, *_ = browser.box("#canvas")
    for across, down in ((0.5, 0.2), (0.9, 0.2), (0.9, 0.8), (0.5, 0.2)):
        click(browser, across, down)
    wait_fragment(browser, "#filters=invert&regions=polygon:20,6+36,6+36,24")
    wait_pixel(browser, 0.85, NEGATIVE, 0.3)
    wait_pixel(browser, 0.55, COLOUR, 0.7)
    (left, top), (right, bottom) = spot(browser, 0.9, 0.2), spot(browser, 0.5, 0.8)
    browser.drag([(x + left, y + top), (x + right, y + top), (x + right, y + bottom)])
    wait_fragment(browser, "#filters=invert&regions=polygon:20,6+20,24+36,24")
    wait_pixel(browser, 0.55, NEGATIVE, 0.7)
    (left, top), (right, _) = spot(browser, 0.6, 0.7), spot(browser, 0.4, 0.7)
    browser.drag([(x + left, y + top), (x + right, y + top)])
    wait_fragment(browser, "#filters=invert&regions=polygon:12,6+12,24+28,24")

    for across, down in ((0.05, 0.1), (0.2, 0.1), (0.05, 0.5)):
        click(browser, across, down)
    click(browser, 0.05, 0.5)
    first, second = "polygon:12,6+12,24+28,24", "polygon:2,3+8,3+2,15"
    wait_fragment(browser, f"#filters=invert&regions={first};{second}")
    for across, down in ((0.6, 0.1), (0.95, 0.1), (0.95, 0.5)):
        click(browser, across, down)
    browser.key("Escape")
    for across, down in ((0.7, 0.1), (0.95, 0.1), (0.95, 0.5)):
        click(browser, across, down)
    browser.key("Enter")
    wait_fragment(browser, f"#filters=invert&regions={first};{second};polygon:28,3+38,3+38,15")
    browser.key("Delete")
    wait_fragment(browser, f"#filters=invert&regions={first};{second}")
    browser.fill("#shape-0-corners", "0,0 40,0 0,30")
    browser.click("#shape-1-remove")
    wait_fragment(browser, "#filters=invert&regions=polygon:0,0+40,0+0,30")
    wait_pixel(browser, 0.2, NEGATIVE, 0.2)
    wait_pixel(browser, 0.9, COLOUR, 0.9)
    browser.fill("#shape-0-corners", "0,0 40, 0,30")
    browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('polygon:')")


def test_errors(browser, service):
    start(browser, service, chain="box=size=3")
    browser.fill("#p-box-size", "4")
    browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('expected an odd integer')")
    browser.wait("document.querySelector('[data-parameter=size]').classList.contains('wrong')")
    browser.fill("#p-box-size", "5")
    browser.wait("document.querySelector('#problem').hidden && !document.querySelector('.wrong')")


def test_verified(browser, service):
    start(browser, service, chain="box=size=5")
    browser.click("#verify")
    browser.wait("document.querySelector('.badge.good')?.textContent.includes('3,600 samples')")
    rows = browser.ask("[...document.querySelectorAll('#waterfall tr')].map(row => row.cells[0].textContent)")
    assert {"decode", "wait", "encode", "verify", "total"} <= set(rows) and len(rows) > 5
    assert "cpu0" in browser.text("#waterfall") and "cpu0" in browser.text("#badges")


def test_code(browser, service, tmp_path):
    start(browser, service, chain="gaussian=sigma=2,convolve=kernel=1 2 1&regions=4,6,16,18;polygon:20,1 39,9 25,25&border=reflect&border_value=1,2,3")
    (tmp_path / "a.png").write_bytes(PNG)
    expected = service.post("/v1/chain?filters=gaussian=sigma=2,convolve=kernel=1+2+1&regions=4,6,16,18;polygon:20,1+39,9+25,25&border=reflect&border_value=1,2,3", PNG)
    assert expected.status == 200
    for language, command in (("curl", ["sh", "-c"]), ("convolve", ["sh", "-c"]), ("Python", ["/usr/bin/python3", "-c"])):
        browser.click(f"#tab-{language}")
        browser.wait("document.querySelector(arguments[0]).getAttribute('aria-selected') === 'true'", f"#tab-{language}")
        subprocess.run([*command, browser.text("#code")], cwd=tmp_path, check=True, timeout=120, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        assert (tmp_path / "out.png").read_bytes() == expected.body, language
        (tmp_path / "out.png").unlink()
    browser.click("#tab-JavaScript")
    browser.wait("document.querySelector('#code').textContent.includes('await service')")
    code = re.sub(r"^import (\{.*\}) from (.*);$", r"const \1 = await import(\2);", browser.text("#code"), flags=re.M)
    assert code.startswith("const { Service } = await import(")
    assert browser.run(f"const image = new Blob([new Uint8Array(arguments[0])]); {code} return bytesOf(blob);", list(PNG)) == list(expected.body)


def test_presets(browser, launch):
    """They are loaded from cards and are requests of their own, with what may be given beside them."""
    with launch("--preset", "neg=invert", "--preset", "relief=filters=emboss&border=wrap", "--presets-only", "yes",
                environment=ONE_DEVICE) as service:
        start(browser, service, chain="")
        assert browser.text(".group h2") == "Presets"
        cards = ".group:first-child .card"
        assert browser.ask(f"[...document.querySelectorAll('{cards}')].map(card => [card.textContent, card.title])") == [
            ["neg", "invert"], ["relief", "emboss & border=wrap"]]
        browser.click(f"{cards}:nth-child(2)")
        wait_fragment(browser, "#filters=emboss&border=wrap")
        browser.click(cards)
        wait_pixel(browser, 0.75, NEGATIVE)
        assert "/v1/presets/neg " in browser.text("#code") and fragment(browser) == "#filters=invert"
        browser.click("#verify")
        browser.wait("document.querySelector('.badge.good')?.textContent.includes('3,600 samples')")
        assert "/v1/presets/neg?verify=1'" in browser.text("#code")
        browser.click("#tab-convolve")
        browser.wait("document.querySelector('#code').textContent.includes('convolve \\\\\\n  @neg')")
        browser.click("#tab-JavaScript")
        browser.wait("document.querySelector('#code').textContent.includes('apply(image, { preset: \"neg\" }')")
        browser.click(".card[data-filter=box]")
        browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('Only presets may be used')")
        browser.open(service, "/#filters=invert")  # a link, too
        browser.wait(DONE)
        assert browser.ask("document.querySelector('#problem').hidden")


def test_token(browser, guarded):
    with guarded() as service:
        browser.open(service)
        browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('Enter a token')")
        browser.click("#problem button")
        browser.fill("#token-text", "secret-token")
        browser.click("#token button")
        browser.wait("document.querySelectorAll('.card').length > 20 && document.querySelector('#problem').hidden")
        browser.open(service, "/status")
        browser.wait("document.querySelector('#ready').textContent === 'ready'")


FIRST_FIGURES = "[...document.querySelectorAll('dd:not(.note)')].slice(0, 3).map(e => Number(e.textContent))"


def test_status(browser, service):
    browser.open(service, "/status")
    browser.wait("document.querySelector('#ready').textContent === 'ready'")
    browser.wait("document.querySelector('#devices').textContent.includes('cpu0')")
    assert "motion" not in browser.text("#all")
    assert browser.ask("[...document.querySelectorAll('dt')].slice(0, 3).map(e => e.textContent)") == ["Images filtered", "Failed", "Refused"]
    filtered, failed, refused = browser.ask(FIRST_FIGURES)
    before = browser.text("#since")
    for _ in range(3):
        assert service.post("/v1/filters/motion?length=3", PNG).status == 200
    service.post("/v1/filters/none", PNG)
    service.post("/v1/filters/box", PNG[:-99])
    browser.wait(f"(([a, b, c]) => a >= {filtered + 3} && b > {failed} && c > {refused})({FIRST_FIGURES})")
    browser.wait("[...document.querySelectorAll('#requests tr')].some(r => r.cells[0].textContent === '/v1/filters/{name}' && +r.cells[2].textContent >= 3)")
    assert service.post("/v1/filters/box", PNG, headers=PREFER).status == 202
    browser.wait("/Asynchronous jobs0open; 1 ended, with \\d+ B of results/.test(document.querySelector('#figures').textContent)")
    assert "changes not on disk yet" in browser.text("#figures")
    browser.wait("document.querySelector('#since').textContent !== arguments[0]", before)
    browser.wait("document.querySelector('.chart .lines').getAttribute('d').split('L').length > 2")
    browser.click("#all")
    browser.ask("document.querySelector('#all').closest('details').open = true")
    browser.wait("document.querySelector('#all').textContent.includes('requests_rejected_total')")


def test_docs(browser, service):
    browser.open(service, "/docs")
    browser.wait("document.querySelectorAll('.operation').length > 30")
    named = set(browser.ask("[...document.querySelectorAll('.contents a')].map(a => a.textContent)"))
    assert {one["name"] for one in service.get("/v1/filters").json()["filters"]} <= named
    assert "odd integer, 1 to 601" in browser.text("#post-v1-filters-box")


CONTRAST = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility({opacityProperty: true}) && !e.closest('[aria-hidden=true], :disabled')
  && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const over = (colour) => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); };
  const read = () => { const lin = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]; };
  const up = []; for (let at = e; at; at = at.parentElement) up.unshift(getComputedStyle(at).backgroundColor);
  up.forEach(over); const ground = read(); over(getComputedStyle(e).color); const ink = read();
  return [(Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05), e.className, e.textContent.slice(0, 40)];
}).filter(([ratio]) => ratio < 4.5)"""


FILTERED = "/#sample=spheres&filters=convolve=kernel=1+2+1,box&roi=10,10,300,300"
DEVICES, OPERATION = "document.querySelector('#devices tbody td')", "document.querySelector('.operation')"


@pytest.mark.slow
@pytest.mark.parametrize("path, there", [(FILTERED, DONE), ("/status", DEVICES), ("/docs", OPERATION)])
@pytest.mark.parametrize("dark", [False, True])
def test_for_everybody(browser, service, path, there, dark):
    """In the dark, on phones, and for those who hear it: controls have names, text stands out, nothing is cut off."""
    browser.open(service, path, dark=dark, phone=dark, **({"width": 390, "height": 844} if dark else {}))
    browser.wait(there)
    assert browser.nameless() == []
    assert browser.ask(CONTRAST) == []
    assert browser.ask("document.documentElement.scrollWidth <= innerWidth")
    assert browser.ask("parseInt(getComputedStyle(document.body).backgroundColor.split('(')[1])") < 60 or not dark
    assert browser.ask("document.querySelectorAll('h1').length === 1 && document.documentElement.lang === 'en'")
    ids = browser.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.fixture
def proxy(service, server):
    """proxy(prefix, judge): the service at another path; judge(path) may answer instead."""
    def start(prefix="", judge=lambda path: None):
        def answer(handler):
            assert handler.path.startswith(prefix), handler.path
            path = handler.path.removeprefix(prefix)
            if instead := judge(urllib.parse.unquote_plus(path)):
                return instead
            if len(handler.body) < int(handler.headers.get("Content-Length", 0)):
                return None  # the page has gone: the service would wait for the rest
            headers = {name: value for name, value in handler.headers.items() if name != "Host"}
            own = service.request(handler.command, path, handler.body or None, headers)
            return own.status, {"X-Image": None, **own.headers}, own.body
        return server(answer)
    return start


def test_prefix(browser, proxy):
    there = proxy("/images")
    browser.open(there, "/images/#filters=invert&sample=rings")
    browser.wait(DONE)
    assert f":{there.port}/images/v1/filters/invert" in browser.text("#code")
    browser.click(".bar a[href=docs]")
    browser.wait("document.querySelectorAll('.operation').length > 30")


# Results belong to their requests --------------------------------------------------------------------

class Judge:
    """Holds requests whose path has the text `hold` until `free`, refuses those with `refuse`."""
    hold = refuse = answer = None

    def __init__(self):
        self.free, self.held = threading.Event(), threading.Event()

    def __call__(self, path):
        if self.hold and self.hold in path and "priority=batch" not in path:
            self.held.set()
            assert self.free.wait(60)
        return self.answer if self.refuse and self.refuse in path else None


@pytest.fixture
def judge():
    return Judge()


@pytest.fixture
def judged(proxy, judge):
    yield proxy(judge=judge)
    judge.free.set()


NOTHING_SHOWN = ("((save) => !save.checkVisibility() && !save.hasAttribute('href') && !document.querySelector('#waterfall tbody tr')"
                 " && document.querySelector('#waterfall').hidden && document.querySelector('#badges').textContent === '')(document.querySelector('#save'))")


def assert_no_result(browser, former=NEGATIVE):
    """Nothing of a result can be seen, or saved; where the former was, it is not."""
    x, y = spot(browser, 0.75)
    browser.wait(NOTHING_SHOWN, what="no result")
    browser.wait(f"((p, c) => p.some((v, i) => Math.abs(v - c[i]) > 20))({PIXEL}, arguments[2])", x, y, list(former), what="the former result is gone")


def save(browser, button="#save"):
    """Returns the file that pressing "Save the result" makes."""
    with tempfile.TemporaryDirectory() as directory:
        browser.command("Page.setDownloadBehavior", behavior="allow", downloadPath=directory)
        browser.click(button)
        file, = poll(lambda: [file for file in pathlib.Path(directory).glob("*.png") if file.read_bytes().endswith(PNG[-12:])],
                     what="a saved file, whole")
        return file.name, file.read_bytes()


def assert_shown_is_saved(browser, service, target, image=PNG):
    """The saved file has the bytes of the service's answer to this, and is the one on the stage."""
    browser.wait(DONE)
    expected = service.post(target, image)
    assert expected.status == 200
    assert save(browser) == (browser.text("#name").split(".")[0] + "-filtered.png", expected.body)
    browser.ask("document.querySelector('#divider').focus()")
    browser.key("Home")
    browser.key("Escape")
    pixels, _ = imagefiles.read_pil(expected.body)
    for across, down in ((0.05, 0.05), (0.3, 0.5), (0.7, 0.5), (0.95, 0.95)):
        wait_pixel(browser, across, tuple(int(v) for v in pixels[int(30 * down), int(40 * across)]), down)


def add_box(browser):
    browser.click(".card[data-filter=box]")


@pytest.mark.parametrize("change", ["chain", *(
    pytest.param(change, marks=pytest.mark.slow)
    for change in ("region", "address", "part", "common", "border", "token"))])
def test_no_result_while_a_request_runs(browser, service, judged, judge, change):
    start(browser, judged)
    judge.hold = "/v1/"
    {"chain": lambda: add_box(browser), "region": lambda: browser.click("[data-new=rectangle]"), "part": lambda: browser.click("[data-new=roi]"),
     "common": lambda: browser.click("#verify"), "border": lambda: browser.click("#borders input[value=wrap]"),
     "token": lambda: browser.ask("dispatchEvent(new Event('tokenchange'))"),
     "address": lambda: browser.ask("void (location.hash = 'filters=invert&regions=1,1,5,5')")}[change]()
    # Before the next frame, and so before anybody can press it: the request has not even been sent.
    assert browser.ask(NOTHING_SHOWN)
    assert judge.held.wait(60)
    assert_no_result(browser)
    assert not browser.ask("document.querySelector('#busy').hidden")
    judge.hold = None
    judge.free.set()
    browser.wait(DONE)
    browser.wait("document.querySelector('#save').checkVisibility() && document.querySelector('#save').hasAttribute('href')")


@pytest.mark.parametrize("answer", [
    (500, {"Content-Type": "text/plain"}, b"no"),
    pytest.param((200, {"Content-Type": "image/png", "X-Image": None}, PNG), marks=pytest.mark.slow)])
def test_no_result_after_a_failure(browser, service, judged, judge, answer):
    """Whatever the answer is, the page says that there is none. (test_module.py has more that are none.)"""
    start(browser, judged)
    judge.refuse, judge.answer = "box", answer
    add_box(browser)
    browser.wait("document.querySelector('#problem:not([hidden])')")
    assert_no_result(browser)
    judge.refuse = None
    browser.click("#problem button")
    assert_shown_is_saved(browser, service, "/v1/chain?filters=invert,box")
    assert browser.ask("document.querySelector('#problem').hidden")


def test_what_is_saved_is_what_is_shown(browser, service):
    """With every region, the one that was drawn last too, and with the parameters that are shown."""
    start(browser, service)
    assert_shown_is_saved(browser, service, "/v1/filters/invert")
    browser.click("#tools [data-tool=rectangle]")
    x, y, *_ = browser.box("#canvas")
    for (left, top), (right, bottom) in (((0.1, 0.1), (0.4, 0.9)), ((0.6, 0.2), (0.9, 0.8))):
        (x0, y0), (x1, y1) = spot(browser, left, top), spot(browser, right, bottom)
        browser.click("#tools [data-tool=rectangle]")
        browser.drag([(x + x0, y + y0), (x + x1 - 9, y + y1), (x + x1, y + y1)])
        assert browser.ask(NOTHING_SHOWN) or "regions=" in fragment(browser)
        browser.wait(DONE)
    regions = re.search(r"regions=([\d,;]+)", fragment(browser))[1]
    assert regions.count(";") == 1
    assert_shown_is_saved(browser, service, f"/v1/filters/invert?regions={regions}")
    browser.click("#invert")
    assert_shown_is_saved(browser, service, f"/v1/filters/invert?invert=1&regions={regions}")


def test_a_link_with_a_region_that_is_none(browser, service):
    """Nothing is left out silently: what the region was to hide would be seen."""
    start(browser, service)
    browser.ask("void (location.hash = 'filters=invert&regions=1,1,5,5;20,6,16')")
    browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('regions')")
    assert_no_result(browser)


def test_another_image_while_a_request_runs(browser, service, judged, judge):
    """Its result is not that of the image before."""
    start(browser, judged)
    judge.hold = "box"
    add_box(browser)
    assert judge.held.wait(60)
    other = imagefiles.write_png(np.full((30, 40, 3), (10, 200, 90), np.uint8))
    put(browser, other, "b.png")
    assert browser.ask(NOTHING_SHOWN)
    browser.wait("document.querySelector('#name').textContent === 'b.png · 40 × 30'")
    judge.free.set()
    assert_shown_is_saved(browser, service, "/v1/chain?filters=invert,box", other)


SLOW = imagefiles.written(imagefiles.pil(np.full((30, 40, 3), COLOUR, np.uint8)), "tiff")


def test_the_file_opened_last_counts(browser, service, judged, judge):
    """Also if one before it takes longer, or fails later; and nothing is seen of an image that is being replaced."""
    start(browser, judged)
    judge.hold = "/v1/filters/linear"  # by which the page reads a TIFF
    put(browser, SLOW, "slow.tif")
    assert browser.ask(NOTHING_SHOWN)
    assert judge.held.wait(60)
    assert_no_result(browser)
    give(browser, name="last.png")
    judge.free.set()
    assert_shown_is_saved(browser, service, "/v1/filters/invert")
    assert browser.text("#name").startswith("last.png") and browser.ask("document.querySelector('#problem').hidden")


def test_a_file_that_cannot_be_opened(browser, service):
    """The page says so until something else is asked for, and offers no result beside that."""
    start(browser, service)
    put(browser, b"text", "b.txt")
    browser.wait("/415|not an image|image/i.test(document.querySelector('#problem:not([hidden])')?.textContent)")
    assert browser.text("#name").startswith("a.png")
    assert_no_result(browser)
    add_box(browser)
    assert_shown_is_saved(browser, service, "/v1/chain?filters=invert,box")
    assert browser.ask("document.querySelector('#problem').hidden")


def test_cards_show_the_image_that_is_there(browser, judged, judge, pictures):
    """Their pictures go with the image, even if there are no new ones."""
    browser.open(judged)
    browser.wait("document.querySelectorAll('.card').length > 20")
    give(browser)
    browser.wait("document.querySelector('.card.seen')")
    judge.refuse, judge.answer = "priority=batch", (429, {"Content-Type": "text/plain"}, b"")
    give(browser, name="b.png")
    browser.wait("!document.querySelector('.card.seen')")
    assert not browser.ask("[...document.querySelectorAll('.card canvas')].some(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean))")


def test_the_pixel_read_is_of_the_result(browser, judged, judge):
    """Below a pointer that rests, too."""
    start(browser, judged)
    (x, y, *_), (right, down) = browser.box("#canvas"), spot(browser, 0.75)
    browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x + right, y=y + down)
    browser.wait("document.querySelector('#pixel').textContent.includes('→  55 155 205')")
    judge.hold = "gamma"
    browser.ask("void (location.hash = 'filters=invert,invert,gamma=gamma=1')")
    browser.wait("!document.querySelector('#pixel').textContent.includes('→')")
    judge.free.set()
    browser.wait("document.querySelector('#pixel').textContent.includes('→  200 100 50')")


def test_back_and_forward(browser, service):
    """A page that comes back shows a result of what its address and its controls say, or none."""
    start(browser, service, chain="box=size=5")
    browser.click("#verify")
    browser.wait("location.hash.includes('verify=1') && document.querySelector('.badge.good')")
    browser.driver.get(service.url + "/docs")
    browser.driver.back()
    browser.wait("document.querySelectorAll('.card').length > 20")
    browser.wait(DONE)
    assert browser.ask("document.querySelector('#verify').checked === location.hash.includes('verify=1')")
    assert browser.ask("Boolean(document.querySelector('.badge.good')) === location.hash.includes('verify=1')")


def test_status_of_jobs_that_are_refused(browser, service, judged, judge):
    browser.open(judged, "/status")
    browser.wait("document.querySelector('#ready').textContent === 'ready'")
    text = service.metrics_text().replace("archive_unusable 0", "archive_unusable 1")
    judge.refuse, judge.answer = "/metrics", (200, {"Content-Type": "text/plain"}, text.encode())
    browser.wait("/refusedthe database cannot be used/.test(document.querySelector('#figures').textContent)")


def test_status_of_a_service_that_is_gone(browser, judged, judge):
    """Figures that are not of now look so, all of them."""
    browser.open(judged, "/status")
    browser.wait("document.querySelector('#devices').textContent.includes('cpu0')")
    judge.refuse, judge.answer = "/metrics", (502, {"Content-Type": "text/plain"}, b"")
    browser.wait("document.querySelector('#ready').textContent === 'no connection'")
    assert browser.ask("['#figures', '#charts', ...[...document.querySelectorAll('section.panel')]].map(e => typeof e === 'string' ? document.querySelector(e) : e)"
                       ".every(e => getComputedStyle(e).opacity < 0.7)")
    judge.refuse = None
    browser.wait("document.querySelector('#ready').textContent === 'ready'")
    assert browser.ask("getComputedStyle(document.querySelector('section.panel')).opacity") == "1"
