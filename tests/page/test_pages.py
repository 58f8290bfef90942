"""The pages in a browser, by what somebody sees and does."""
import http.server
import os
import re
import subprocess
import threading
import urllib.parse

import numpy as np
import pytest

import imagefiles
from service import BUILD, Client

COLOUR = (200, 100, 50)
PNG = imagefiles.write_png(np.full((30, 40, 3), COLOUR, np.uint8))
DONE = "document.querySelector('#waterfall tbody tr') && document.querySelector('#busy').hidden"
PIXEL = ("((at, x, y) => { const c = document.querySelector('#canvas'), k = c.width / c.clientWidth;"
         " return [...c.getContext('2d').getImageData(x * k, y * k, 1, 1).data].slice(0, 3); })(null, arguments[0], arguments[1])")
FILE = "new File([new Uint8Array(arguments[0])], arguments[1], {type: 'image/png'})"


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


def give(browser, event, name="a.png"):
    """Gives the image to the page: dropped, pasted or chosen."""
    browser.ask(f"((file) => {{ const data = new DataTransfer(); data.items.add(file); {event} }})({FILE})", list(PNG), name)
    browser.wait("document.querySelector('#name').textContent === arguments[0]", f"{name} · 40 × 30")


DROP = "dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true, bubbles: true}))"


def start(browser, service, chain="invert", **window):
    """The page with the plain image and a chain."""
    browser.open(service, f"/#filters={chain}" if chain else "/", **window)
    browser.wait("document.querySelectorAll('.card').length > 20")
    browser.wait(DONE if chain else "true")  # of the sample that a chain begins with
    give(browser, DROP)
    if chain == "invert":  # others leave a plain image as it is
        wait_pixel(browser, 0.75, NEGATIVE)


def spot(browser, across, down=0.5):
    """A point of the stage: shares of the image, which is shown as large as it fits."""
    _, _, width, height = browser.box("#canvas")
    scale = min(width / 40, height / 30)
    return (width - 40 * scale) / 2 + across * 40 * scale, (height - 30 * scale) / 2 + down * 30 * scale


def wait_pixel(browser, across, colour, down=0.5):
    """Waits for a colour on the stage."""
    x, y = spot(browser, across, down)
    browser.wait(f"((p, c) => p.every((v, i) => v === c[i]))({PIXEL}, arguments[2])", x, y, list(colour), what=f"{colour} at {across}, {down}")


NEGATIVE = tuple(255 - v for v in COLOUR)


def test_images_come_in(browser, service):
    """Dropped, pasted, chosen, or a sample; the cards then show what they make of it."""
    browser.open(service)
    browser.wait("document.querySelectorAll('.card').length > 20")
    assert not browser.ask("document.querySelector('#empty').hidden")
    give(browser, DROP)
    assert browser.ask("document.querySelector('#empty').hidden")
    give(browser, "dispatchEvent(new ClipboardEvent('paste', {clipboardData: data}))", "b.png")
    give(browser, "const input = document.querySelector('#file'); input.files = data.files; input.dispatchEvent(new Event('change'))",
         "c.png")
    browser.wait("document.querySelector('.card.seen')")
    browser.click("[data-sample=rings]")
    browser.wait("document.querySelector('#name').textContent === 'rings.png · 960 × 640'")
    wait_fragment(browser, "#sample=rings")
    browser.ask(f"((file) => {{ const data = new DataTransfer(); data.items.add(file); {DROP} }})(new File(['text'], 'a.txt'))")
    browser.wait("/415|not an image|image/i.test(document.querySelector('#problem:not([hidden])')?.textContent)")
    assert browser.text("#name").startswith("rings.png")


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
    """What is to be copied does what the page does."""
    start(browser, service, chain="gaussian=sigma=2,convolve=kernel=1 2 1&regions=4,6,16,18&border=reflect&border_value=1,2,3")
    (tmp_path / "a.png").write_bytes(PNG)
    expected = service.post("/v1/chain?filters=gaussian=sigma=2,convolve=kernel=1+2+1&regions=4,6,16,18&border=reflect&border_value=1,2,3", PNG)
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


def test_token(browser, launch_guarded):
    with launch_guarded as service:
        browser.open(service)
        browser.wait("document.querySelector('#problem:not([hidden])')?.textContent.includes('Enter a token')")
        browser.click("#problem button")
        browser.fill("#token-text", "secret-token")
        browser.click("#token button")
        browser.wait("document.querySelectorAll('.card').length > 20 && document.querySelector('#problem').hidden")
        browser.open(service, "/status")
        browser.wait("document.querySelector('#ready').textContent === 'ready'")


def test_status(browser, service):
    """It shows what happens while it is looked at."""
    browser.open(service, "/status")
    browser.wait("document.querySelector('#ready').textContent === 'ready'")
    browser.wait("document.querySelector('#devices').textContent.includes('cpu0')")
    assert "motion" not in browser.text("#all")
    before = browser.text("#since")
    for _ in range(3):
        assert service.post("/v1/filters/motion?length=3", PNG).status == 200
    service.post("/v1/filters/none", PNG)
    browser.wait("[...document.querySelectorAll('#requests tr')].some(r => r.cells[0].textContent === '/v1/filters/{name}' && +r.cells[2].textContent >= 3)")
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


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("path, there", [
    ("/#sample=spheres&filters=convolve=kernel=1+2+1,box&roi=10,10,300,300", DONE), ("/status", "document.querySelector('#devices tbody td')"),
    ("/docs", "document.querySelector('.operation')")])
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
def below_prefix(service):
    """The service at /images/ of another address, as a proxy may have it."""
    class Proxy(http.server.BaseHTTPRequestHandler):
        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            assert self.path.startswith("/images/"), self.path
            answer = service.request(self.command, self.path.removeprefix("/images"), body or None,
                                     {name: value for name, value in self.headers.items() if name != "Host"})
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
        do_GET = do_POST = pass_on

        def log_message(self, *arguments):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Client("127.0.0.1", server.server_port)
        server.shutdown()
        thread.join()


def test_prefix(browser, below_prefix):
    browser.open(below_prefix, "/images/#filters=invert&sample=rings")
    browser.wait(DONE)
    assert f":{below_prefix.port}/images/v1/filters/invert" in browser.text("#code")
    browser.click(".bar a[href=docs]")
    browser.wait("document.querySelectorAll('.operation').length > 30")
