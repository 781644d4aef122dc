#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report_browser.py CHROMIUM PAGE DIR: opens the page of plfs report in a browser without a window, and looks at it: the
colours of the pictures where it is known who wrote, in light and dark, by keyboard, and as a screen reader is told.

The page is of two files by four processes each: "segments", each has a quarter; "strided", pieces of 1000 bytes in turn.
"""
import base64
import json
import os
import struct
import subprocess
import sys
import zlib

CHROMIUM, PAGE, DIR = sys.argv[1:]


class Browser:
    """Chromium's DevTools protocol, over two pipes: messages end with a NUL."""

    def __init__(self):
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()
        for fd, name in ((to_read, 3), (of_write, 4)):
            assert fd > 4 or fd == name, (fd, name)

        def numbers():
            os.dup2(to_read, 33)
            os.dup2(of_write, 34)
            os.dup2(33, 3)
            os.dup2(34, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
             f"--user-data-dir={DIR}/chromium", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=numbers, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(f"{DIR}/chromium.log", "w"))
        os.close(to_read)
        os.close(of_write)
        self.nr, self.rest, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.of, 1 << 16)
            if not more:
                sys.exit("the browser has ended: " + open(f"{DIR}/chromium.log").read()[-2000:])
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.nr += 1
        message = {"id": self.nr, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            got = self.message()
            if got.get("id") == self.nr:
                assert "error" not in got, (method, got)
                return got["result"]
            self.events.append(got)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message())

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def key(self, name, text=""):
        code = {"Tab": 9, "Enter": 13}[name]
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def pixels(self, selector):
        """Of an element: (its box on the page, a function from x, y in it to (red, green, blue))."""
        box = self.js(f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
                      "return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        width, height, rows = decode(base64.b64decode(shot["data"]))
        return width, height, lambda x, y: tuple(rows[min(int(y * height), height - 1)][min(int(x * width), width - 1)])


def decode(data):
    """A PNG of 8 bits a channel, as browsers make it."""
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, bits, colour = struct.unpack_from(">IIBB", data, at + 8)
            assert bits == 8 and colour in (2, 6), (bits, colour)
            size = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw, rows, before = zlib.decompress(packed), [], bytes(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        how, line = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        for i in range(len(line)):
            left = line[i - size] if i >= size else 0
            up, corner = before[i], before[i - size] if i >= size else 0
            if how == 1:
                line[i] = (line[i] + left) & 255
            elif how == 2:
                line[i] = (line[i] + up) & 255
            elif how == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif how == 4:
                near = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
                line[i] = (line[i] + near) & 255
        before = bytes(line)
        rows.append([line[x * size:x * size + 3] for x in range(width)])
    return width, height, rows


def equal(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, not {want!r}")


def colours(b, figure):
    """Of the four processes, as the legend below the picture has them."""
    found = b.js(f"[...document.querySelector('#{figure}').closest('figure').querySelectorAll('.key')]"
                 ".map(k => getComputedStyle(k).backgroundColor.match(/\\d+/g).map(Number))")
    assert len({tuple(c) for c in found}) == 4, found
    return [tuple(c) for c in found]


def near(a, b):
    return all(abs(x - y) <= 6 for x, y in zip(a, b))


def which(colour, known):
    return next((i for i, c in enumerate(known) if near(colour, c)), None)


def segments(b, no):
    """Each process has a quarter of the file, and wrote it behind the one before."""
    known = colours(b, f"f{no}-owners")
    _, _, at = b.pixels(f"#f{no}-owners image")
    for i in range(40):
        equal(f"who has byte {i}/40", which(at((i + 0.5) / 40, 0.5), known), i // 10)
    width, height, at = b.pixels(f"#f{no}-offset-time image")
    seen = [[] for _ in known]
    for y in range(height):
        for x in range(width):
            who = which(at(x / width, (y + 0.5) / height), known)
            if who is not None:
                seen[who].append((x / width, 1 - (y + 0.5) / height))
    for who, points in enumerate(seen):
        assert points, f"process {who} is not in the picture"
        for x, y in points:  # grid lines show through where nobody wrote; a point is as high as a 240th of the picture
            assert who / 4 - 0.006 <= y <= (who + 1) / 4 + 0.006, (who, x, y)
    begins = [min(x for x, _ in points) for points in seen]
    equal("in the order of time", begins, sorted(begins))
    _, _, at = b.pixels(f"#f{no}-matrix image")
    empty = at(0.85, 0.1)
    for row in range(4):
        for column in range(4):
            got = at((column + 0.4) / 4, (row + 0.4) / 4)  # beside the lines of the grid
            equal(f"process {row} wrote in quarter {column}", not near(got, empty), row == column)


def strided(b, no):
    """The pieces at the beginning of the file, in turn."""
    known = colours(b, f"f{no}-beginning")
    fills = b.js(f"[...document.querySelectorAll('#f{no}-beginning rect')].map(r => [getComputedStyle(r).fill.match(/\\d+/g).map(Number),"
                 "r.getBoundingClientRect().width])")
    assert len(fills) >= 40, len(fills)
    for i, (fill, width) in enumerate(fills):
        equal(f"piece {i}", which(fill, known), i % 4)
        assert abs(width - fills[0][1]) < 0.1, (i, width)
    _, _, at = b.pixels(f"#f{no}-beginning")
    shown = [which(at((72 + (i + 0.5) * (760 - 72 - 28) / len(fills)) / 760, 0.35), known) for i in range(len(fills))]
    equal("pieces as they are seen", shown, [i % 4 for i in range(len(fills))])
    _, _, at = b.pixels(f"#f{no}-owners image")
    found = {which(at(x / 200, y / 10), known) for x in range(200) for y in range(10)}
    assert found >= {0, 1, 2, 3}, found


def contrast(b, selector):
    """Of text with what is behind it, as WCAG counts it."""
    def light(rgb):
        parts = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    text, behind = b.js(f"[getComputedStyle(document.querySelector('{selector}')).color, getComputedStyle(document.body).backgroundColor]"
                        ".map(c => c.match(/\\d+/g).map(Number))")
    low, high = sorted((light(text), light(behind)))
    return (high + 0.05) / (low + 0.05)


def light_and_dark(b):
    behind = {}
    for scheme in ("light", "dark"):
        b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        behind[scheme] = b.pixels("h1")[2](0.99, 0.1)
        assert contrast(b, "p.lead") >= 7 and contrast(b, "figcaption") >= 4.5, scheme
        segments(b, 0)
    assert sum(behind["light"]) > 700 and sum(behind["dark"]) < 150, behind


def keyboard(b):
    """The first stop leads past the contents; the numbers behind a picture open without a mouse."""
    b.key("Tab")
    equal("the first stop", b.js("document.activeElement.className"), "skip")
    for _ in range(60):
        b.key("Tab")
        if b.js("document.activeElement.tagName") == "SUMMARY":
            break
    b.key("Enter", "\r")
    assert b.js("document.activeElement.parentNode.open && document.activeElement.parentNode.querySelector('td').offsetHeight > 0")


def screen_reader(b):
    tree = b.call("Accessibility.getFullAXTree")["nodes"]
    pictures = [n for n in tree if n.get("role", {}).get("value") in ("image", "img") and not n.get("ignored")
                and n.get("name", {}).get("value", "").strip()]
    assert len(pictures) >= b.js("document.querySelectorAll('svg').length"), len(pictures)
    names = " ".join(n["name"]["value"] for n in pictures)
    assert "Who wrote which bytes of the file" in names and "Bandwidth over time" in names, names
    assert [n for n in tree if n.get("role", {}).get("value") == "main"], "no main part"


def main():
    b = Browser()
    for domain in ("Page", "Network", "Log", "Accessibility"):
        b.call(domain + ".enable")
    b.call("Emulation.setDeviceMetricsOverride", width=1000, height=900, deviceScaleFactor=1, mobile=False)
    b.call("Page.navigate", url="file://" + PAGE)
    b.wait("Page.loadEventFired")
    keyboard(b)
    screen_reader(b)
    strided(b, 1)
    light_and_dark(b)
    asked = [e["params"]["request"]["url"] for e in b.events if e.get("method") == "Network.requestWillBeSent"]
    assert all(url.startswith(("file://" + PAGE, "data:image/png")) for url in asked), asked
    wrong = [e["params"]["entry"]["text"] for e in b.events if e.get("method") == "Log.entryAdded"]
    equal("complaints of the browser", wrong, [])
    narrow = dict(width=360, height=700, deviceScaleFactor=1, mobile=True)
    b.call("Emulation.setDeviceMetricsOverride", **narrow)
    assert b.js("document.documentElement.scrollWidth") <= 380, "wider than a telephone"
    b.call("Browser.close")
    b.process.wait()
    while os.read(b.of, 1 << 16):  # until its children have ended too
        pass


main()
