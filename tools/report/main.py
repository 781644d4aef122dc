# SPDX-License-Identifier: BSD-3-Clause
"""plfs report: the page of a job. The plfs command starts it; its options are those of plfs-report(1)."""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # python3 -I leaves it out
import export
import load
import page


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plfs", required=True)
    parser.add_argument("--format", required=True)
    parser.add_argument("--output")
    parser.add_argument("--map", action="append", default=[])
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("jobs", nargs="+")
    return parser.parse_args()


def save(text, path):
    """Whole or not at all, if it is a file."""
    data = text.encode("utf-8", "backslashreplace")
    if not path:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as out:
            out.write(data)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as out:
            out.write(data)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def main():
    args = arguments()
    try:
        job = load.load(args.plfs, args.map, args.jobs)
        if args.format == "csv":
            text = export.table(job)
        elif args.format == "perfetto":
            text = export.perfetto(job, args.plfs)
        else:
            version = subprocess.run([args.plfs, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
            text = page.page(job, version)
        for note in job.notes:
            print(f"plfs: {note}", file=sys.stderr)
        save(text, args.output)
    except load.Trouble as trouble:
        if str(trouble):
            print(f"plfs: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"plfs: {args.output or 'standard output'}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
