"""The pages, tried with axe-core."""
import sys

from browser import Browser
from measure import measured
from run import environment_of
from service import ONE_DEVICE

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


def axe(options):
    """Looks for what keeps people from using the pages: findings, each with the elements
    concerned."""
    script = next(environment_of("axe").rglob("axe.min.js")).read_text()
    total = 0
    with measured(*options.service, environment=ONE_DEVICE) as service, Browser() as browser:
        for state in STATES:
            for phone in (False, True):
                found = findings(browser, service, script, state, phone)
                total += len(found)
                yield {"page": state[0].partition("&")[0], "on": "a phone, dark" if phone else "a screen",
                       "findings": found}
    sys.exit(total > 0)


def findings(browser, service, script, state, phone):
    path, there, clicks, then = state
    browser.open(service, path, **({"dark": True, "phone": True, "width": 390, "height": 844} if phone else {}))
    browser.wait(there)
    for selector in clicks:
        browser.click(selector)
    browser.wait(then)
    browser.driver.execute_script(script)
    return browser.run(
        "const found = await axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}});"
        "return Object.fromEntries(found.violations.map((v) => [`${v.id} (${v.impact}): ${v.help}`,"
        " v.nodes.map((n) => n.target.join(' ') + ': ' + n.html.slice(0, 160)).join('; ')]));")
