"""The pages on phones and on screens: what is in sight, and in which order."""
import pytest

from test_pages import DEVICES, DONE, OPERATION, give, silent, wait_fragment  # noqa

CARDS = "document.querySelectorAll('.card').length > 20"
PHONES = [(390, 844), (844, 390)]
SIZES = [*PHONES, (768, 1024), (1280, 800), (1920, 1080)]
# Wider than the window, or with an end outside of it, unless it lies in something that scrolls.
OUTSIDE = """[document.documentElement.scrollWidth - arguments[0], ...[...document.querySelectorAll('body *')]
  .filter((e) => e.checkVisibility() && e.matches('a, button, input, select, summary, canvas, h1, h2, h3, p, dd, td, label'))
  .filter((e) => { for (let at = e; at; at = at.parentElement) if (/auto|hidden/.test(getComputedStyle(at).overflowX)) return false; return true; })
  .filter((e) => { const box = e.getBoundingClientRect(); return box.left < 0 || box.right > arguments[0] + 0.5 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth; })
  .map((e) => e.outerHTML.slice(0, 120))]"""
# All of it is in the window, and nothing covers its middle.
IN_SIGHT = """((e) => { const box = e.getBoundingClientRect();
  return box.width > 0 && box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight
    && e.parentElement.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)); })(document.querySelector(arguments[0]))"""


@pytest.mark.parametrize("path, there", [("/", CARDS), ("/#sample=hills&filters=convolve=kernel=1 2 1;1 2 1;1 2 1&roi=10,10,300,300", DONE),
                                         ("/status", DEVICES), ("/docs", OPERATION)], ids=["empty", "filtered", "status", "docs"])
def test_nothing_is_cut_off(browser, service, path, there):
    """At any size, which may change while a page is open."""
    browser.open(service, path)
    browser.wait(there)
    for width, height in SIZES:
        browser.resize(width, height, width < 1000)
        browser.wait("document.documentElement.clientWidth === arguments[0]", width)
        assert browser.ask(OUTSIDE, width) == [0], (width, height)


@pytest.mark.parametrize("width, height", PHONES)
def test_a_phone(browser, service, width, height):
    """A photo is chosen by a button; a filter's slider is beside the picture, and the result is saved from there."""
    browser.open(service, width=width, height=height, phone=True)
    browser.wait(CARDS)
    assert browser.ask("document.querySelector('#choose').innerText") == "Choose a photo" and browser.ask(IN_SIGHT, "#choose")
    browser.ask("document.querySelector('#file').click = () => { window.chosen = true; }")
    browser.click("#choose")
    assert browser.ask("window.chosen")
    give(browser)
    for name in "box", "unsharp":
        browser.click(f".card[data-filter={name}]")
        browser.wait(DONE)
        for one in "#canvas", "#parameters input[type=range]", "#save", "#open":
            assert browser.ask(IN_SIGHT, one), (name, one)
    names = browser.ask("[...document.querySelectorAll('.tools button, .tools a')].filter(e => e.checkVisibility()).map(e => e.innerText)")
    assert {"Save", "Before", "Compare", "Rectangle", "Ellipse", "Part"} < set(names)
    browser.ask("document.querySelector('#verify').focus()")
    assert browser.ask(IN_SIGHT, "#verify") and browser.ask(IN_SIGHT, "#canvas")


def test_the_order(browser, service):
    """By Tab, and for those who hear the page: the image, filters, the chain with its parameters, the answer."""
    browser.open(service, "/#sample=rings&filters=box", width=390, height=844, phone=True)
    browser.wait(DONE)
    nodes = {node["nodeId"]: node for node in browser.command("Accessibility.getFullAXTree")["nodes"]}

    def named(at):
        node = nodes[at]
        parts = [part for child in node.get("childIds", []) if child in nodes for part in named(child)]
        role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value")
        return [f"{role} {name}", *parts] if not node.get("ignored") and role in ("navigation", "region", "button", "link", "slider", "heading") else parts
    heard = named(next(iter(nodes)))
    order = ["navigation Pages", "heading Filter an image", "region Image", "button Open…", "link Save", "button Rectangle", "slider Divider between before and after",
             "button Hills", "region Filters", "button gaussian", "button convolve", "region Chain and parameters", "slider size", "region Request", "region Time"]
    assert [one for one in heard if one in order] == order

    seen = []
    while not seen or seen[-1] != "gaussian":
        browser.command("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        seen.append(browser.ask("((e) => e.id || e.textContent.trim())(document.activeElement)"))
        assert len(seen) < 40
    assert [one for one in seen if one in ("API", "open", "save", "canvas", "divider", "search", "gaussian")] == [
        "API", "open", "save", "canvas", "divider", "search", "gaussian"]


def test_the_choice_of_a_border(browser, service):
    """It is there if it means something: one of the filters reads around, or it is given."""
    browser.open(service)
    browser.wait(CARDS)
    for chain, there in (("filters=invert", False), ("filters=invert,box", True), ("filters=gamma,lut=points=0 0;255 255", False), ("luma=box", True),
                         ("luma=invert", False), ("chroma=gamma,median", True), ("filters=none", False), ("filters=invert&border=wrap", True), ("filters=resize=width=9", True),
                         ("filters=threshold", False), ("filters=threshold=method=otsu", False), ("filters=threshold=method=mean", True)):
        browser.ask("void (location.hash = arguments[0])", chain)
        browser.wait("document.querySelector('#border').checkVisibility() === arguments[0]", there, what=f"{chain}: {there}")


def test_contents_fold(browser, service):
    """On a phone they cover nothing until they are wanted, and go once one is chosen."""
    listed = "document.querySelector('.contents a').checkVisibility()"
    browser.open(service, "/docs", width=390, height=844, phone=True)
    browser.wait(OPERATION)
    assert not browser.ask(listed)
    browser.click(".contents summary")
    assert browser.ask(listed)
    browser.click(".contents a[href='#post-v1-filters-median']")
    browser.wait("!" + listed)
    browser.wait("((top) => top >= 0 && top < 200)(document.querySelector('#post-v1-filters-median').getBoundingClientRect().top)")
    browser.resize(1280, 800)
    browser.wait(listed)
