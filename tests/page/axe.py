"""Tries the pages with axe-core, as `./dev axe` does: axe.py AXE.MIN.JS. The findings are printed,
each with the elements concerned; the status is then 1."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from browser import Browser  # noqa: E402
from service import ONE_DEVICE, Service  # noqa: E402

DONE = "document.querySelector('#waterfall tbody tr') && document.querySelector('#busy').hidden"
CHAIN = "/#sample=spheres&filters=convolve=kernel=1+2+1;2+4+2;1+2+1,lut=points=0+0;60+20;255+255,gaussian&border=constant" \
    "&regions=20,20,200,100;ellipse:300,200,90,90"
# The states to check: address, a condition, selectors to click then, a condition.
STATES = [
    ("/", "document.querySelectorAll('.card').length > 20", [], "true"),
    (CHAIN, DONE, ["#token summary", "#tab-JavaScript"], "document.querySelector('#code').textContent.includes('Service')"),
    ("/#sample=rings&filters=box=size=4&roi=10,10,90,90", "!document.querySelector('#problem').hidden", [], "true"),
    ("/status", "document.querySelector('#devices tbody td')", ["details:has(#all) summary"], "document.querySelector('#all').textContent.includes('_total')"),
    ("/docs", "document.querySelector('.operation')", [], "true"),
]


def violations(browser):
    return browser.run("const found = await axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}});"
                       "return found.violations.map((v) => [v.id, v.impact, v.help, v.nodes.map((n) => n.target.join(' ') + ': ' + n.html.slice(0, 160))]);")


def try_state(browser, service, state, dark):
    path, there, clicks, then = state
    browser.open(service, path, dark=dark, phone=dark, **({"width": 390, "height": 844} if dark else {}))
    browser.wait(there)
    for selector in clicks:
        browser.click(selector)
    browser.wait(then)
    browser.driver.execute_script(pathlib.Path(sys.argv[1]).read_text())
    found = violations(browser)
    print(f"{path.partition('&')[0]}{' on a phone, dark' if dark else ''}: {len(found)} findings")
    for rule, impact, text, nodes in found:
        print(f"  {rule} ({impact}): {text}", *nodes, sep="\n    ")
    return found


def main(directory):
    with Service(directory / "service", directory / "cache", environment=ONE_DEVICE) as service, Browser() as browser:
        return any([try_state(browser, service, state, dark) for state in STATES for dark in (False, True)])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(main(pathlib.Path(place)))
