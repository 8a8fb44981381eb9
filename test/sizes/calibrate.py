"""How far ahead of the next best the readings are that were taken, where the file is right and
where it is wrong: what MARGIN (src/dyn/verdict.c) is chosen by.

usage: calibrate.py RESULTS.json [PT2ONNX]      results of suite.py --json

Every conversion of the results that gave a file is made again with --report.  Of the sizes that it
took by evidence the one with the least margin counts.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TAKEN = re.compile(r"evidence: (\d+) bits, the next best reading costs (\d+) more")
STEPS = [(4, 5), (6, 7), (8, 11), (12, 19), (20, 99)]
GOOD, BAD = ("right", "excluded", "branch"), ("wrong", "fails")


def margins(pt2onnx, result):
    """[(margin, bits held)] of the sizes that a conversion took by evidence"""
    more = result["more"]
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.md")
        words = [pt2onnx] + more["files"] + [os.path.join(scratch, "m.onnx"), "--quiet"]
        p = subprocess.run(words + more["options"] + ["--report", report], capture_output=True)
        if p.returncode:
            raise SystemExit("%s %s does not convert any more" % (result["module"], result["way"]))
        with open(report) as f:
            return [(int(m.group(2)), int(m.group(1))) for m in TAKEN.finditer(f.read())]


def main():
    with open(sys.argv[1]) as f:
        results = json.load(f)
    root = os.path.dirname(os.path.dirname(HERE))
    pt2onnx = sys.argv[2] if len(sys.argv) > 2 else os.path.join(root, "build/release/pt2onnx")
    tables = {}
    for r in results:
        way = r["way"].split("-")[0]
        if way not in ("one", "two", "planned") or r["kind"] not in GOOD + BAD:
            continue
        least = min(margins(pt2onnx, r), default=None)
        row = "none" if least is None else next(
            "%d to %d" % s if s[1] < 99 else "%d or more" % s[0] for s in STEPS if least[0] <= s[1])
        tables.setdefault(way, collections.Counter())[row, r["kind"] in GOOD] += 1
    rows = ["none"] + ["%d to %d" % s if s[1] < 99 else "%d or more" % s[0] for s in STEPS]
    print("| least margin, bits | " + " | ".join("%s: right, wrong" % w for w in tables) + " |")
    print("|---" * (len(tables) + 1) + "|")
    for row in rows:
        cells = ["%d, %d" % (t[row, True], t[row, False]) for t in tables.values()]
        print("| %s | %s |" % (row, " | ".join(cells)))


if __name__ == "__main__":
    main()
