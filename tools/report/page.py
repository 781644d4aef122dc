# SPDX-License-Identifier: BSD-3-Clause
"""The page: self-contained, without scripts, with a table behind each picture."""
import html
import time

import words
from draw import Picture, css, heat_png, seconds, size, writers_png

STYLE = """
:root { --fg: #1b1b1b; --soft: #595959; --bg: #ffffff; --panel: #f4f5f7; --grid: #d9d9d9; --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e8e8e8; --soft: #b0b0b0; --bg: #16181c; --panel: #21242a; --grid: #3c4048; --link: #8ab8ff; } }
html { color-scheme: light dark; }
body { color: var(--fg); background: var(--bg); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
a { color: var(--link); } a:focus-visible, summary:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; } .skip:focus { position: static; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; } h3 { margin-top: 1.8rem; }
.lead { font-size: 1.08rem; } .soft, figcaption { color: var(--soft); font-size: .92rem; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; background: var(--panel); border-radius: 4px; }
svg text { fill: var(--fg); font: 11px system-ui, sans-serif; } svg .grid { stroke: var(--grid); } .raster { image-rendering: pixelated; }
.scroll { overflow-x: auto; max-height: 26rem; } table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0; }
th, td { border: 1px solid var(--grid); padding: .15rem .6rem; text-align: right; } th:first-child, td.text { text-align: left; overflow-wrap: anywhere; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .3em 0 .8em; vertical-align: -.05em; }
code { background: var(--panel); padding: .1em .3em; overflow-wrap: anywhere; }
@media print { .scroll { max-height: none; } }
"""
ROWS = 200      # of a table of writers; the CSV has all
SLOWEST = 12
CURVE = 120     # columns of the picture of bandwidth by the index
HOSTS = 12      # with lines of their own


def esc(text):
    return html.escape(str(text).encode("utf-8", "backslashreplace").decode())


def table(caption, head, rows):
    def cell(value):
        return f"<td>{value:,}</td>" if isinstance(value, int) else f'<td class="text">{esc(value)}</td>'
    return ('<div class="scroll" tabindex="0" role="region" aria-label="' + esc(caption) + f'"><table><caption>{esc(caption)}</caption><thead><tr>'
            + "".join(f'<th scope="col">{esc(h)}</th>' for h in head) + "</tr></thead><tbody>"
            + "".join("<tr>" + "".join(cell(v) for v in row) + "</tr>" for row in rows) + "</tbody></table></div>")


def figure(name, picture, caption, behind=""):
    more = f"<details><summary>The numbers</summary>{behind}</details>" if behind else ""
    return f"<figure>{picture.svg(name)}<figcaption>{caption}</figcaption>{more}</figure>"


def legend(f):
    """Which colour is whose."""
    nr = len(f.rows)
    shown = range(nr) if nr <= 10 else sorted({round(i * (nr - 1) / 5) for i in range(6)})
    return "".join(f'<span class="key" style="background:{css(i, nr)}"></span>{esc(f.name(i))}' for i in shown) + \
        ("" if nr <= 10 else " (colours between these: the others, in order)")


def at(f, moment):
    """A time of the file, for a table."""
    return f"{moment - f.begin:.3f}"


# ---- the pictures of a file ----

def offset_time(f, name):
    rows = [[n for n, times in row for _ in range(times)] for row in f.offset_time]
    p = Picture("Which bytes were written when, and by whom",
                f"Time from left to right, {seconds(f.drawn_seconds)}; the bytes of the file from bottom to top, {size(f.size)}. "
                f"A point has the colour of the process that wrote there then: {words.Written(f).order_in_words(len(f.rows))}.",
                f.drawn_seconds, f.size, 420)
    p.axes("seconds since the first write", "place in the file", lambda v: f"{v:g}", size)
    p.image(writers_png(rows[::-1], len(f.rows)))
    behind = table("Each process: where and when it wrote", ["process", "host", "first byte", "end", "first write, s", "last change, s"],
                   [[f.name(w["no"]), w["host"], w["first_offset"], w["end_offset"], f"{(w['from_ns'] - f.from_ns) / 1e9:.3f}",
                     f"{(w['to_ns'] - f.from_ns) / 1e9:.3f}"] for w in f.writers[:ROWS]])
    return figure(name, p, f"Each point shows one of the processes that wrote there at that time. {legend(f)}",
                  behind + rest_of(len(f.writers)))


def rest_of(nr):
    return f'<p class="soft">The first {ROWS} of {nr:,} processes; plfs report --format=csv has all.</p>' if nr > ROWS else ""


def rates(f):
    """(begin, width of an interval in seconds, [(host, bytes a second in each)], how it is known)."""
    if f.is_counted and not f.is_traced:
        begin, width, hosts = f.counted.bandwidth()
        if width:
            named = sorted(hosts.items(), key=lambda h: -sum(h[1]))
            lines = [(host, [v / width for v in values]) for host, values in named[:HOSTS]]
            if named[HOSTS:]:
                lines.append(("the other hosts", [sum(v) / width for v in zip(*(values for _, values in named[HOSTS:]))]))
            return begin, width, lines, f"As counted, in intervals of {width:g} s. "
    if not f.is_drawn:
        return 0, 0, [], ""
    step = len(f.bandwidth[0]["bytes"]) // CURVE
    width = f.drawn_seconds / CURVE or 1
    return f.from_ns / 1e9, width, [(b["host"] or "the other hosts", [sum(b["bytes"][i * step:(i + 1) * step]) / width for i in range(CURVE)])
                   for b in f.bandwidth], "By the trace. " if f.is_traced else "By the index: between two known moments the bytes of a log are spread evenly. "


def bandwidth(f, name):
    _, width, lines, how = rates(f)
    if not lines:
        return ""
    nr = len(lines[0][1])
    p = Picture("Bandwidth over time, for each host",
                "; ".join(f"{host}: at most {size(max(v))}/s, in the mean {size(sum(v) / nr)}/s" for host, v in lines) + ".",
                nr * width, max(max(values) for _, values in lines) * 1.05)
    p.axes("seconds since the first interval" if f.is_counted and not f.is_traced else "seconds since the first write", "bytes a second", lambda v: f"{v:g}", size)
    for i, (_, values) in enumerate(lines):
        p.line([(x * width, v) for k, v in enumerate(values) for x in (k, k + 1)], css(i, len(lines)), len(lines) == 1)
    keys = "".join(f'<span class="key" style="background:{css(i, len(lines))}"></span>{esc(host)}' for i, (host, _) in enumerate(lines))
    rows = [[f"{k * width:.3f}"] + [round(v[k]) for _, v in lines] for k in range(nr)]
    return figure(name, p, how + keys, table("Bytes a second", ["from, s"] + [host for host, _ in lines], rows))


def owners(f, name):
    rows = f.owner_rows
    columns = len(f.owners) // rows
    p = Picture("Who wrote which bytes of the file",
                "The file from its first byte at the left to its last at the right, as it is now. " + shares_in_words(f), f.size, 1, 110)
    p.axes("place in the file", "", size, None)
    p.image(writers_png([[f.owners[x * rows + y] for x in range(columns)] for y in range(rows)], len(f.rows)))
    sampled = {}
    for no in f.owners:
        sampled[no] = sampled.get(no, 0) + 1
    behind = table("Share of the file", ["process", "bytes written", "of the file, %"],
                   [[f.name(w["no"]), w["bytes"], f"{100 * sampled.get(w['no'], 0) / len(f.owners):.1f}"] for w in f.writers[:ROWS]])
    return figure(name, p, f"Where colours are mixed, neighbouring pieces are of different processes. {legend(f)}",
                  behind + rest_of(len(f.writers)))


def shares_in_words(f):
    nobody = f.owners.count(-1) / len(f.owners)
    return f"{len({n for n in f.owners if n >= 0}):,} processes have bytes in it." + \
        (f" {100 * nobody:.0f} % of it are holes, or in the stub." if nobody > 0.005 else "")


def beginning(f, name):
    shown = f.facts.get("beginning", [])[:max(48, min(4 * len(f.rows), 256))]
    if len(shown) < 2:
        return ""
    end = shown[-1][0] + shown[-1][1]
    p = Picture("The first bytes of the file, piece by piece", f"{words.plural(len(shown), 'piece')} in the first {size(end)}, each with its own width.",
                end, 1, 90)
    p.axes("place in the file", "", size, None)
    for off, length, no in shown:
        whose = f.name(no) if no >= 0 else "a hole, or the stub"
        p.rect(off, off + length, 0, 1, css(no, len(f.rows)) if no >= 0 else "none", f"{off:,} to {off + length:,}: {whose}")
    behind = table("Pieces", ["from", "bytes", "process"], [[off, length, f.name(no) if no >= 0 else "-"] for off, length, no in shown])
    return figure(name, p, legend(f), behind)


def matrix(f, name):
    rows, nr = f.writers_and_offsets, len(f.rows)
    if nr < 2:
        return ""
    p = Picture("Which process wrote where", "Processes from top to bottom, the bytes of the file from left to right; the darker, the more bytes.",
                f.size, nr, 300, down=True)
    p.axes("place in the file", "process", size, lambda v: f"{v:g}")
    p.image(heat_png(rows))
    each = f"{nr / len(rows):.0f} processes a row, in the order of their first bytes" if nr > len(rows) else "a row for each process"
    return figure(name, p, f"A diagonal: each process has a part of the file to itself. An even area: all processes write everywhere. {each.capitalize()}.")


def histogram(f, name, sizes, what, text=""):
    """@sizes: (from, how many, bytes or None), each up to twice as long."""
    if not sizes:
        return ""
    p = Picture(f"How large the {what} are", "; ".join(f"{power(low)} and more: {nr:,}" for low, nr, _ in sizes) + ".",
                len(sizes), max(nr for _, nr, _ in sizes) * 1.05)
    p.axes(f"bytes of one of the {what}: so many and more, below the next", what, None, many)
    for i, (low, nr, total) in enumerate(sizes):
        p.rect(i + 0.1, i + 0.9, 0, nr, css(0, 2), f"{low:,} to {low * 2 - 1:,} bytes: {nr:,} {what}" + (f", {size(total)}" if total else ""))
        p.text_at(p.x(i + 0.5), p.height - 22, power(low))
    rows = [[low, nr, "not known" if total is None else total] for low, nr, total in sizes]
    return figure(name, p, esc(text), table(what.capitalize(), ["from, bytes", what, "bytes"], rows))


def many(nr):
    """A number beside an axis."""
    for unit, least in (("", 1), (" k", 1000), (" M", 10**6), (" G", 10**9)):
        if nr < 10000 * least:
            return f"{nr / least:,.4g}{unit}"
    return f"{nr:.3g}"


def power(low):
    """A power of two, as it is usually said."""
    for unit in ("", " KiB", " MiB", " GiB", " TiB"):
        if low < 1024 or unit == " TiB":
            return f"{low}{unit}"
        low //= 1024


def sizes(f, name):
    w = words.Written(f)
    text = "Most frequent: " + ", ".join(f"{length:,} bytes ({nr:,} times)" for nr, length in w.common[:5]) + "." if w.common else ""
    out = [histogram(f, name, w.sizes, f"{'write ' if f.has_calls else ''}{w.unit}s", text)]
    if f.is_counted:
        read = [(1 << i, nr, None) for i, nr in enumerate(f.counted.sizes["read"]) if nr]
        out.append(histogram(f, name + "-read", read, "read calls"))
    return out


def stragglers(f, name):
    slow = sorted(f.rows, key=lambda r: -r.end)[:SLOWEST]
    ends = sorted(r.end for r in f.rows)
    median = ends[len(ends) // 2] - f.begin
    p = Picture("The last processes to end", "; ".join(f"{f.name(r.no)} on {r.host}: {at(f, r.end)} s" for r in slow[:5])
                + f". Half of all had ended after {median:.3f} s.", max(r.end for r in f.rows) - f.begin, len(slow), 60 + 22 * len(slow), down=True)
    p.axes("seconds since the first write", "", lambda v: f"{v:g}", None)
    for i, r in enumerate(slow):
        p.rect(r.begin - f.begin, r.end - f.begin, i + 0.15, i + 0.85, css(r.no, len(f.rows)), f"{f.name(r.no)}, {r.host}")
        p.text_at(68, p.y(i + 0.5) + 4, f.name(r.no).replace("process", "no."), "end")
    p.add(f'<line x1="{p.x(median):.1f}" x2="{p.x(median):.1f}" y1="10" y2="{p.height - 36}" style="stroke:var(--fg);stroke-dasharray:4 3"/>')
    last = "end of its last write" if f.has_calls else "last change of its log"
    return figure(name, p, f"Each bar goes from the first write of a process to the {last}. Dashed: half of all had ended, {median:.3f} s.",
                  processes("The last to end", f, slow) + (slow_calls(f) if f.has_calls else ""))


def processes(caption, f, rows):
    head = ["process", "host", "pid", "bytes", "first write, s", "last, s", "bytes a second"]
    lines = [[f.name(r.no), r.host, str(r.pid), r.bytes, at(f, r.begin), at(f, r.end), round(r.bytes / max(r.end - r.begin, 1e-3))] for r in rows]
    if f.has_calls:
        head += ["calls", "in calls, s", "slowest call, s", "ended"]
        for line, r in zip(lines, rows):
            line += [r.pieces, *(["-"] * 2 if r.seconds is None else [f"{r.seconds:.3f}", f"{r.slowest:.4f}"]), "yes" if r.ended else "no"]
    return table(caption, head, lines)


def slow_calls(f):
    rows = sorted((r for r in f.rows if r.seconds is not None), key=lambda r: -r.seconds)[:SLOWEST]
    return processes("The longest in write calls", f, rows)


# ---- the whole ----

def of_file(f, no):
    name = f"f{no}"
    out = [f'<h2 id="{name}">{esc(f.path)}</h2>', f'<p class="lead">{esc(" ".join(words.summary(f)))}</p>']
    if not f.rows:
        return out
    out.append("<h3>What was written when</h3>")
    if f.is_drawn:
        out.append(offset_time(f, name + "-offset-time"))
    out.append(bandwidth(f, name + "-bandwidth"))
    if f.is_drawn:
        out += ["<h3>Who wrote which bytes</h3>", owners(f, name + "-owners"), beginning(f, name + "-beginning"), matrix(f, name + "-matrix")]
    out += ["<h3>In what pieces</h3>"] + sizes(f, name + "-sizes")
    if f.has_index:
        out.append(f"<p>{esc(words.merged(f))}</p>")
    if len(f.rows) > 1:
        out += ["<h3>Who was last</h3>", stragglers(f, name + "-last")]
    tips = words.hints(f)
    out.append("<h3>Hints</h3>" + ("<ul>" + "".join(f"<li><code>{esc(what)}</code>: {esc(why)}.</li>" for what, why in tips) + "</ul>"
                                   if tips else "<p>None: nothing stands out.</p>"))
    out.append("<h3>What is not known</h3><ul>" + "".join(f"<li>{esc(u)}</li>" for u in words.unknown(f)) + "</ul>")
    return out


def contents(files):
    """A list of all files, with links to those that are drawn."""
    items = [f'<li><a href="{where}">{esc(path)}</a>, {size(nr)}</li>' if where else
             f"<li>{esc(path)}, {size(nr)}: not drawn</li>" for path, nr, where in files[:ROWS]]
    if len(files) > ROWS:
        items.append(f"<li>and {len(files) - ROWS:,} more</li>")
    return '<nav aria-label="Files"><ul>' + "".join(items) + "</ul></nav>"


def page(job, version):
    files = [(f.path, f.whole_size, f"#f{i}") for i, f in enumerate(job.files)] + [(path, nr, "") for path, nr in job.others]
    title = files[0][0].rsplit("/", 1)[-1] if len(files) == 1 else f"{len(files)} files"
    jobs = sorted({j for s in job.stats for j in s.jobs if j} | {t[0]["job"] for t in job.traces if t[0]["job"]})
    out = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
           '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; style-src \'unsafe-inline\'">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">',
           f"<title>{esc(title)}: how it was written</title><style>{STYLE}</style></head><body>",
           f'<a class="skip" href="#main">To the report</a><header><h1>{esc(title)}: how it was written</h1>',
           f'<p class="soft">Made by plfs {esc(version)} on {time.strftime("%Y-%m-%d %H:%M")}'
           + (f"; job {esc(', '.join(jobs))}" if jobs else "") + "</p></header>"]
    if len(files) > 1:
        out.append(contents(files))
    out.append('<main id="main">')
    out += [f'<p role="note"><strong>Note:</strong> {esc(note)}.</p>' for note in job.notes]
    for i, f in enumerate(job.files):
        out += of_file(f, i)
    out.append("</main></body></html>")
    return "\n".join(out) + "\n"
