# SPDX-License-Identifier: BSD-3-Clause
"""What the numbers say, in plain words: the paragraph at the top, the hints, and what is not known."""
from draw import seconds, size

STRIPE = 1 << 20  # pieces below it make neighbours wait for each other on a parallel file system


def plural(number, word, many=None):
    return f"{number:,} {word if number == 1 else many or word + 's'}"


class Written:
    """How a file was written: by its calls, if they were counted, else by the pieces of its index."""

    def __init__(self, f):
        if f.is_counted:
            c = f.counted
            self.nr, self.bytes, self.unit = c.write.calls, c.write.bytes, "call"
            self.common = sorted(((nr, length) for length, nr in c.common.items()), reverse=True)
            self.kinds = {k: getattr(c.write, k) for k in ("sequential", "strided", "random")}
            self.sizes = [(1 << i, nr, None) for i, nr in enumerate(c.sizes["write"]) if nr]
        else:
            self.nr, self.bytes, self.unit = f.pieces, f.bytes, "call" if f.is_traced else "piece"
            self.common = sorted(((nr, length) for length, nr in f.common_sizes), reverse=True)
            self.kinds = {k: sum(w[k] for w in f.writers) for k in ("sequential", "strided", "random")}
            self.sizes = [tuple(s) for s in f.sizes]
        self.length, self.share = (self.common[0][1], self.common[0][0] / max(self.nr, 1)) if self.common else (0, 0)
        self.kind = max(self.kinds, key=self.kinds.get)
        self.hosts = len({r.host for r in f.rows})

    def pieces_in_words(self):
        if self.share > 0.97:
            return f"in pieces of {self.length:,} bytes"
        if self.share > 0.5:
            return f"most in pieces of {self.length:,} bytes"
        if not self.sizes:
            return "in pieces of unknown size"
        return (f"in pieces of {size(self.sizes[0][0])} to {size(self.sizes[-1][0] * 2 - 1)}, "
                f"{size(self.bytes / max(self.nr, 1))} in the mean")

    def order_in_words(self, nr_writers):
        if self.nr <= nr_writers:
            return "each process all of its part at once"
        if self.kind == "strided":
            return "strided: each process wrote pieces at a fixed distance from each other"
        if self.kind == "random":
            return "in no regular order"
        return "one piece behind the other" if nr_writers == 1 else "each process one piece behind the other"


def who(f):
    if f.ranked:
        programs = {r.program for r in f.rows if r.program}
        return plural(len(f.rows), "rank") + (f" of {programs.pop()}" if len(programs) == 1 else "")
    return plural(len(f.rows), "process", "processes")


def summary(f):
    """Sentences about one file."""
    if not f.has_calls and f.storage == "plain":
        return [f"The file is a plain one of {size(f.size)}: libplfs knows nothing of how it was written."]
    if not f.has_calls and not f.is_drawn and f.facts.get("log_bytes"):
        return [f"The file has {size(f.size)}, whose logs are not in the backend: plfs places shows where they are, and plfs drain "
                "moves them home. Then a report shows who wrote them."]
    if not f.has_calls and not f.is_drawn:
        return [f"The file has {size(f.size)}, all of them in its stub: it was small, or was mapped into memory, or is empty. "
                "Who wrote them is not recorded."]
    out = written_in_words(f) if f.rows else ["The job has not written the file."]
    if f.has_calls:
        out.append(read_in_words(f))
    killed = sum(not r.ended for r in f.rows)
    if f.has_index and f.open_logs:
        out.append(f"{plural(f.open_logs, 'log')} {'is' if f.open_logs == 1 else 'are'} not closed: "
                   "processes write the file at this moment, or were killed. What they wrote is here all the same.")
    elif killed:
        out.append(f"{plural(killed, 'process', 'processes')} did not come to {'its' if killed == 1 else 'their'} end: "
                   "killed, or still running when this was counted.")
    return out


def written_in_words(f):
    w = Written(f)
    out = [f"{who(f)} on {plural(w.hosts, 'host')} wrote {size(w.bytes)} {w.pieces_in_words()}, {w.order_in_words(len(f.rows))}."]
    if f.seconds > 0.01 or f.has_calls:
        last = "the end of the last write" if f.has_calls else "the last change of a log"
        out.append(f"From the first write to {last} it took {seconds(f.seconds)}: {size(w.bytes / max(f.seconds, 1e-6))}/s.")
    else:
        out.append("It took less than 10 ms, which is less than the moments of the index can tell apart.")
    if len(f.rows) > 1 and w.kind != "sequential" and w.nr > len(f.rows) and w.bytes / max(w.nr, 1) < STRIPE:
        if f.in_logs:
            out.append(f"Directly, they would have written {w.nr:,} pieces into one file, neighbours into the same blocks, "
                       "each waiting for the locks of the others. Here each appended to a log of its own.")
        else:
            out.append("It is a plain file: neighbours wrote into the same blocks, each waiting for the locks of the others. "
                       "Below a mapping of libplfs each would append to a log of its own.")
    timed = [r for r in f.rows if r.seconds is not None]
    if timed and w.nr:
        slow = max(timed, key=lambda r: r.slowest)
        out.append(f"The calls took {seconds(sum(r.seconds for r in timed) / w.nr)} in the mean; "
                   f"the slowest took {seconds(slow.slowest)}, of {f.name(slow.no)} on {slow.host}.")
    return out


def read_in_words(f):
    readers = f.processes_read
    if not readers:
        return "The job has not read it."
    others = [nr for nr, wrote in readers if not wrote]
    text = f"{plural(len(readers), 'process', 'processes')} read {size(sum(nr for nr, _ in readers))}"
    if len(others) == len(readers):
        return text + (", and had not written the file." if len(others) == 1 else ", and none of them had written the file.")
    if others:
        text += f", {size(sum(others))} of it by {plural(len(others), 'process', 'processes')} that had not written the file"
    return text + "."


def merged(f):
    """What the library made of the pieces."""
    nr, unit = (Written(f).nr, "write call") if f.has_calls else (f.pieces, "piece")
    each = nr / max(f.index_records, 1)
    text = (f"{plural(nr, unit)} became {plural(f.index_records, 'record')} in {size(f.index_bytes)} of index, "
            f"{each:,.0f} {unit if round(each) == 1 else unit + 's'} a record. Each process appended them to its log in the order in "
            f"which it wrote them; the logs have {size(f.log_bytes)}, with checksums and copies of the index.")
    if f.overwritten_bytes:
        text += f" {'About ' if f.overwritten_is_estimate else ''}{size(f.overwritten_bytes)} of them were overwritten or cut off later."
    return text


def hints(f):
    """(what, why) of each: plfs advise's of the file as it is stored and of the stats file, and what the report sees besides."""
    out = {}
    for what, why in f.facts.get("advice", []) if f.facts else []:
        out[tuple(what.split()[:2])] = (what, why)
    for what, why in f.advised:
        out.setdefault(tuple(what.split()[:2]), (what, why))
    return list(out.values()) + (index_hints(f) if f.has_index else []) + (call_hints(f) if f.has_calls else [])


def index_hints(f):
    if not f.damaged_blocks and not f.lost_blocks:
        return []
    return [(f"plfs check {f.path}", f"{plural(f.damaged_blocks + f.lost_blocks, 'block')} of the index cannot be used")]


def call_hints(f):
    out = []
    w = Written(f)
    if not f.is_counted and not f.in_logs and len(f.rows) > 1 and w.bytes and w.bytes / max(w.nr, 1) < STRIPE:
        out.append(("Map the directory of this file (plfs run -m)",
                    f"{who(f)} wrote one plain file in pieces of {size(w.bytes / max(w.nr, 1))} in the mean"))
    if not f.is_counted and w.nr > 1000 and w.bytes / w.nr < 512:
        out.append(("Larger writes, or a buffer (stdio, collective buffering)", f"a call had {w.bytes / w.nr:.0f} bytes in the mean"))
    errors = sum(p.errors for p in f.counted.processes.values()) if f.is_counted else f.errors
    if errors:
        out.append(("Look into the job's own output", f"{plural(errors, 'call')} on the file failed"))
    return out


def unknown(f):
    """What this report does not know, and why."""
    out = []
    if not f.has_calls:
        out += ["The ranks of the processes: they are numbered by the first byte that each wrote. Two that had the same number on "
                "a host, one after the other, count as one.",
                "Calls: writes of a process that continue each other are one piece here, so there may have been more and smaller calls.",
                "Reads, opens, syncs, and the time that calls took. Run the job with PLFS_STATS, or plfs run --stats, to have them counted."]
    elif not f.ranked and f.rows:
        out.append("The ranks of the processes: no variable of a batch system or MPI library told them.")
    if f.is_drawn and not f.is_traced:
        out.append("The moment of each byte: a record has the moment at which it began, a log the moment of its last change. Between two "
                   "known moments bytes are spread evenly, so a pause inside a record, or before the end of a log, looks like slow writing. "
                   "A job with PLFS_TRACE has the moment of each call.")
    if f.has_index and not f.complete:
        out.append("All that open logs have: looking at the map of so many pieces was ended early.")
    if f.has_index and f.stub_bytes:
        out.append(f"{size(f.stub_bytes)} that are in the stub itself: who wrote them is not recorded.")
    if not f.is_drawn:
        out.append("Which bytes of the file are whose: there is no trace, and no index that could be read here.")
    if f.is_drawn and not f.has_index:
        out.append("What libplfs made of the writes: there is no index that could be read here.")
    return out
