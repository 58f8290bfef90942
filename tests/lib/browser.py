"""A browser without a window: Chromium's, driven by its own protocol through Selenium."""
import contextlib
import json

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service as Driver

from service import PATIENCE, poll

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
             "--disable-component-update", "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb")


class Browser(contextlib.AbstractContextManager):
    """One page at a time. Scripts are expressions of JavaScript."""

    def __init__(self):
        options = Options()
        options.binary_location = "/usr/lib/chromium/chromium-headless-shell"  # whose script would outlive it
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Driver("/usr/bin/chromedriver"), options=options)
        self.driver.set_script_timeout(PATIENCE)
        self.driver.set_page_load_timeout(PATIENCE)

    def __exit__(self, *error):
        self.driver.quit()

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def resize(self, width, height, phone=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.command("Emulation.setTouchEmulationEnabled", enabled=phone)

    def open(self, service, path="/", width=1360, height=860, dark=False, phone=False):
        """Nothing moves that need not, which takes processor time."""
        self.resize(width, height, phone)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"},
                     {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.driver.get("about:blank")  # a change of the fragment alone would load nothing
        self.driver.get(service.url + path)

    def ask(self, expression, *arguments):
        return self.driver.execute_script(f"return {expression}", *arguments)

    def run(self, body, *arguments):
        """Runs the body of an async function; its exceptions are raised. bytesOf() lists a Blob."""
        value, problem = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1], bytesOf = async (blob) => [...new Uint8Array(await blob.arrayBuffer())];"
            "(async function () {" + body + "}).apply(null, arguments).then((value) => done([value, null]),"
            " (error) => done([null, String(error)]));", *arguments)
        assert problem is None, problem
        return value

    def wait(self, expression, *arguments, what=None):
        """Waits until the expression is true, and returns its value."""
        return poll(lambda: self.ask(expression, *arguments), what=what or expression,
                    interval=0.05, more=self.complaints)

    def text(self, selector):
        return self.ask("document.querySelector(arguments[0]).textContent", selector)

    def click(self, selector):
        self.wait("document.querySelector(arguments[0])", selector)
        self.ask("document.querySelector(arguments[0]).click()", selector)

    def fill(self, selector, text, event="change"):
        """Does the same as typing and leaving a field, or moving a slider."""
        self.wait("document.querySelector(arguments[0])", selector)
        self.ask("(([at, value, kind]) => { const box = document.querySelector(at); box.value = value;"
                 " box.dispatchEvent(new Event(kind, {bubbles: true})); })(arguments)", selector, text, event)

    def drag(self, points):
        """The pointer pressed at the first of (x, y), moved along them, and let go at the last."""
        def mouse(kind, x, y, **more):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        mouse("mouseMoved", *points[0])
        mouse("mousePressed", *points[0], button="left", clickCount=1)
        for x, y in points[1:]:
            mouse("mouseMoved", x, y, button="left", buttons=1)
        mouse("mouseReleased", *points[-1], button="left", clickCount=1)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key)

    def box(self, selector):
        """Returns (x, y, width, height) in the window."""
        return self.ask("(b => [b.x, b.y, b.width, b.height])(document.querySelector(arguments[0]).getBoundingClientRect())", selector)

    def middle(self, selector):
        x, y, width, height = self.box(selector)
        return x + width / 2, y + height / 2

    def nameless(self):
        """Roles of controls that have no name for those who do not see the page."""
        wanted = {"button", "link", "textbox", "searchbox", "combobox", "slider", "spinbutton", "checkbox", "radio", "tab", "image", "img"}
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        return [json.dumps(node)[:300] for node in nodes
                if not node.get("ignored") and node.get("role", {}).get("value") in wanted
                and not node.get("name", {}).get("value", "").strip()
                and not (node["role"]["value"] == "image" and not node.get("focusable"))]

    def complaints(self):
        """Returns errors of scripts and violations of the policy since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
