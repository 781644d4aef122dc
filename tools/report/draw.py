# SPDX-License-Identifier: BSD-3-Clause
"""Pictures as SVG inside a page: axes, lines, bars, and rasters as PNG. Colours of text and lines are the page's CSS
variables, so that a page is light or dark as its reader wants; colours of writers are the same in both."""
import base64
import html
import math
import struct
import zlib

FEW = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99", "#9988dd", "#888888"]
# Viridis without its ends, which are hard to see on a dark or a light page.
MANY = [(70, 51, 127), (54, 92, 141), (39, 127, 142), (31, 161, 135), (74, 193, 109), (160, 218, 57)]
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 72, 28, 10, 36
SHADES = 250


def colour(no, nr):
    """The colour of writer @no of @nr, as (red, green, blue)."""
    if nr <= len(FEW):
        return tuple(int(FEW[no][i:i + 2], 16) for i in (1, 3, 5))
    at = no / (nr - 1) * (len(MANY) - 1)
    low = min(int(at), len(MANY) - 2)
    return tuple(round(a + (b - a) * (at - low)) for a, b in zip(MANY[low], MANY[low + 1]))


def css(no, nr):
    return "#%02x%02x%02x" % colour(no, nr)


def size(number):
    """4.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if abs(number) < 999.5 or unit == "PB":
            break
        number /= 1000
    text = f"{number:.0f}" if unit == "bytes" or number >= 99.95 else f"{number:.1f}"
    return f"{text} {'byte' if text == '1' and unit == 'bytes' else unit}"


def seconds(number):
    if number >= 100:
        return f"{number:,.0f} s"
    if number >= 1:
        return f"{number:.1f} s"
    if number >= 1e-3:
        return f"{number * 1000:.1f} ms" if number < 0.01 else f"{number * 1000:.0f} ms"
    return f"{number * 1e6:.1f} \u00b5s"


def ticks(most, nr=5):
    """Round numbers from 0 to @most."""
    if most <= 0:
        return [0]
    step = 10.0 ** math.floor(math.log10(most / nr))
    step = next(s for s in (step, step * 2, step * 5, step * 10) if most / s <= nr)
    return [step * i for i in range(int(most / step + 1e-9) + 1)]


# ---- rasters ----

def png(rows, palette):
    """A PNG of @rows of numbers of colours; @palette: (red, green, blue, alpha) each."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"PLTE", b"".join(bytes(c[:3]) for c in palette))
            + chunk(b"tRNS", bytes(c[3] for c in palette))
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)) + chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(data).decode()


def writers_png(rows, nr):
    """The same of numbers of writers, -1 for nobody: transparent."""
    if nr <= SHADES:
        palette = [(0, 0, 0, 0)] + [colour(i, nr) + (255,) for i in range(nr)]
        return png([[n + 1 for n in row] for row in rows], palette)
    palette = [(0, 0, 0, 0)] + [colour(i, SHADES) + (255,) for i in range(SHADES)]
    return png([[0 if n < 0 else 1 + n * SHADES // nr for n in row] for row in rows], palette)


def heat_png(rows):
    """The same of amounts: the more, the less transparent."""
    most = max((max(row) for row in rows), default=0) or 1
    palette = [(0x33, 0x77, 0xbb, round(255 * i / 15)) for i in range(16)]
    return png([[0 if v <= 0 else max(2, round(15 * v / most)) for v in row] for row in rows], palette)


# ---- pictures ----

class Picture:
    """One SVG with axes. x and y are numbers from 0 to @x_most and @y_most; the y axis points up, or with @down down."""
    count = 0

    def __init__(self, title, text, x_most, y_most, height=260, down=False):
        Picture.count += 1
        self.title, self.text = title, text
        self.x_most, self.y_most = x_most or 1, y_most or 1
        self.height, self.down, self.parts = height, down, []

    def x(self, value):
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_most

    def y(self, value):
        part = value / self.y_most
        return TOP + (self.height - TOP - BOTTOM) * (part if self.down else 1 - part)

    def add(self, text):
        self.parts.append(text)

    def text_at(self, x, y, text, anchor="middle"):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>')

    def axes(self, x_label, y_label, x_show, y_show):
        """@x_show, @y_show: functions from a number to its text; None: no axis."""
        bottom = self.height - BOTTOM
        for value in ticks(self.x_most, 8) if x_show else []:
            self.add(f'<line class="grid" x1="{self.x(value):.1f}" x2="{self.x(value):.1f}" y1="{TOP}" y2="{bottom}"/>')
            self.text_at(self.x(value), bottom + 14, x_show(value))
        for value in ticks(self.y_most) if y_show else []:
            self.add(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(value):.1f}" y2="{self.y(value):.1f}"/>')
            self.text_at(LEFT - 5, self.y(value) + 4, y_show(value), "end")
        self.text_at((LEFT + WIDTH - RIGHT) / 2, self.height - 5, x_label)
        if y_label:
            middle = (TOP + bottom) / 2
            self.add(f'<text transform="rotate(-90 12 {middle:.1f})" x="12" y="{middle:.1f}" text-anchor="middle">{html.escape(y_label)}</text>')

    def image(self, href):
        """A raster over the whole of the axes."""
        self.add(f'<image class="raster" x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
                 f'height="{self.height - TOP - BOTTOM}" preserveAspectRatio="none" href="{href}"/>')

    def rect(self, x0, x1, y0, y1, fill, title=None):
        left, right = self.x(x0), self.x(x1)
        top, bottom = sorted((self.y(y0), self.y(y1)))
        inside = f"<title>{html.escape(title)}</title>" if title else ""
        self.add(f'<rect x="{left:.2f}" y="{top:.2f}" width="{max(right - left, 0.3):.2f}" '
                 f'height="{max(bottom - top, 0.3):.2f}" style="fill:{fill}">{inside}</rect>')

    def line(self, points, fill, area=False):
        path = "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        if area:
            self.add(f'<path d="{path}L{self.x(points[-1][0]):.1f} {self.y(0):.1f}L{self.x(points[0][0]):.1f} {self.y(0):.1f}Z" '
                     f'style="fill:{fill};fill-opacity:.25"/>')
        self.add(f'<path d="{path}" style="fill:none;stroke:{fill};stroke-width:1.6"/>')

    def svg(self, name):
        return (f'<svg id="{name}" role="img" aria-labelledby="{name}-t {name}-d" viewBox="0 0 {WIDTH} {self.height}" '
                f'xmlns="http://www.w3.org/2000/svg"><title id="{name}-t">{html.escape(self.title)}</title>'
                f'<desc id="{name}-d">{html.escape(self.text)}</desc>\n' + "\n".join(self.parts) + "\n</svg>")
