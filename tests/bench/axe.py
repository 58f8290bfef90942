"""The pages, tried with axe-core."""
import sys

from browser import Browser
from measure import measured
from run import environment_of
from service import ONE_DEVICE

DONE = "document.querySelector('#waterfall tbody tr') && document.querySelector('#busy').hidden"
CARDS = "document.querySelectorAll('.card').length > 20"
CHAIN = "/#sample=spheres&filters=convolve=kernel=1+2+1;2+4+2;1+2+1,lut=points=0+0;60+20;255+255,gaussian&border=constant" \
    "&regions=20,20,200,100;ellipse:300,200,90,90"
# The states to check: address, a condition, selectors to click then, a condition.
STATES = [
    ("/", CARDS, [], "true"),
    ("/#sample=spheres", CARDS, [".card[data-filter=box]", "#tools [data-tool=rectangle]"], DONE),
    (CHAIN, DONE, ["#token summary", "#tab-JavaScript"], "document.querySelector('#code').textContent.includes('Service')"),
    ("/#sample=hills&filters=box", DONE, ["#tools [data-tool=paint]", "#erase"], "document.querySelector('#brush').checkVisibility()"),
    ("/#sample=rings&filters=box=size=4&roi=10,10,90,90", "!document.querySelector('#problem').hidden", [], "true"),
    ("/status", "document.querySelector('#devices tbody td')", ["details:has(#all) summary"], "document.querySelector('#all').textContent.includes('_total')"),
    ("/docs", "document.querySelector('.operation')", ["#fold summary", "#token summary"], "true"),
]
SIZES = [(390, 844), (844, 390), (768, 1024), (1280, 800), (1920, 1080)]


def axe(options):
    """Looks for what keeps people from using the pages: findings, each with the elements
    concerned."""
    script = next(environment_of("axe").rglob("axe.min.js")).read_text()
    total = 0
    with measured(*options.service, environment=ONE_DEVICE) as service, Browser() as browser:
        for state in STATES:
            for width, height in SIZES:
                found = findings(browser, service, script, state, width, height)
                total += len(found)
                yield {"page": state[0].partition("&")[0], "size": f"{width} x {height}", "findings": found}
    sys.exit(total > 0)


def findings(browser, service, script, state, width, height):
    """Small sizes are a phone's, and dark."""
    path, there, clicks, then = state
    browser.open(service, path, width, height, dark=width < 1000, phone=width < 1000)
    browser.wait(there)
    for selector in clicks:
        browser.click(selector)
    browser.wait(then)
    browser.driver.execute_script(script)
    return browser.run(
        "const found = await axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}});"
        "return Object.fromEntries(found.violations.map((v) => [`${v.id} (${v.impact}): ${v.help}`,"
        " v.nodes.map((n) => n.target.join(' ') + ': ' + n.html.slice(0, 160)).join('; ')]));")
