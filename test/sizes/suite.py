"""Converts modules in every way that there is to say which sizes are dynamic, runs each file at
twelve sizes and compares with PyTorch.

usage: suite.py [PT2ONNX] [--ways symbolic,one,two-1,..] [--modules REGEX] [--jobs N] [--cache DIR]
                [--list KIND] [--json FILE] [--table FILE.md] [--record DIR]

Ways (--ways takes beginnings: `two` is all of two-*):
  symbolic         a capture with symbolic sizes, nothing declared; counted as `partly` where
                   PyTorch fixed some of them, which then keep their size in the test
  one-1 .. one-5   one capture at fixed sizes, every axis declared by --input
  two-1 .. two-4   two captures at fixed sizes, nothing declared
  planned          captures at the sizes that `pt2onnx plan` asks for
  asked            the same, and then the captures that refusals ask for
  onnx-dynamo, onnx-script     torch.onnx.export at fixed sizes, every axis declared by --input
  python, python-noverify      pt2onnx.export
An axis that is an expression (2*t) is declared by a name of its own.  The classes of results are in
judge.py; parts: refused, and the captures are different programs (a Python loop or branch on a
size); pinned: refused or excluded, and so is the capture with dynamic sizes when PyTorch runs it: at
most of the tested sizes, or at all that are excluded, it raises or is not the model; n/a: PyTorch
itself does not export the module so that it can be run; harness: an error of this program.
--list KIND,.. prints the results of these classes, and for `illegal` the sizes that a case allows
and PyTorch does not run at.
"""
import argparse
import collections
import functools
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(1, os.path.join(ROOT, "python"))
os.environ.setdefault("PT2ONNX_LIBRARY", os.path.join(ROOT, "build/release/libpt2onnx.so"))

import onnxruntime

import capture
import judge
from judge import Verdict

os.environ.setdefault("PT2ONNX_ORT", os.path.join(os.path.dirname(onnxruntime.__file__), "capi"))
WAYS = (["symbolic"] + ["one-%d" % (k + 1) for k in range(len(capture.ONE))]
        + ["two-%d" % (k + 1) for k in range(len(capture.TWO))]
        + ["planned", "asked", "onnx-dynamo", "onnx-script", "python", "python-noverify"])
ROWS = ["symbolic", "partly"] + WAYS[1:]
KINDS = ["right", "refused", "parts", "excluded", "pinned", "branch", "wrong", "fails", "crash", "harness", "n/a"]
BAD = {"wrong", "fails", "crash", "harness"}
SILENCE = 600                   # seconds after which a worker is taken for dead
QUESTIONS = 6                   # captures that are taken because a refusal asks for them


class Try:
    """One module in one way."""

    def __init__(self, subject, way, pt2onnx, scratch):
        self.subject, self.way, self.pt2onnx = subject, way, pt2onnx
        self.out = os.path.join(scratch, "m.onnx")
        self.row = way

    def verdict(self):
        name, _, rest = self.way.partition("-")
        return getattr(self, name)(rest)

    def convert(self, files, options, captured, refs=None):
        """Converts and judges."""
        if os.path.exists(self.out):
            os.remove(self.out)
        words = [self.pt2onnx] + files + [self.out, "--quiet"] + options
        verdict, self.said = judge.convert(words)
        if verdict is None:
            refs = self.subject.refs() if refs is None else refs
            verdict = judge.judge(self.out, self.subject, refs, captured)
        elif os.path.exists(self.out):
            verdict = Verdict("wrong", "refused, but there is a file: " + verdict.why)
        verdict.more.update(files=files, options=options, captured=captured)
        return verdict

    def symbolic(self, _):
        subject = self.subject
        path, sizes, fixed = subject.symbolic()
        texts = {subject.case.inputs[i].axes[k] for i, k in fixed}
        held = {s: n for s, n in sizes.items() if any(s in re.findall(r"\w+", t) for t in texts)}
        if fixed:
            self.row = "partly"
        if len(held) == len(sizes):
            return Verdict("n/a", "PyTorch fixed all sizes")
        verdict = self.convert([path], [], [sizes], subject.refs(held))
        verdict.more.update(fixed=len(fixed), held=held)
        at = verdict.more.get("at")
        if at and verdict.kind in ("wrong", "fails", "branch"):
            out, says = capture.says_capture(subject, path, at)
            if out is not None:
                bad = judge.difference_of_all(out, subject.eager(at))
                says = "differs as well: " + bad if bad else "is right"
            verdict.why += " (the capture in PyTorch %s)" % says
        if verdict.kind in ("refused", "excluded") and self.is_pinned(path, verdict, held):
            verdict.kind = "pinned"
        return verdict

    def is_pinned(self, path, verdict, held):
        """No file that is right at more sizes can be made of what PyTorch captured."""
        refs = self.subject.refs(held)
        at = verdict.more.get("excluded", [sizes for sizes, _, _ in refs])
        right = sum(capture.is_right(self.subject, path, sizes, want, judge.difference_of_all)
                    for sizes, _, want in refs if sizes in at)
        return right == 0 if verdict.kind == "excluded" else 2 * right <= len(at)

    def one(self, which):
        sizes = self.subject.choice(capture.ONE[int(which) - 1])
        return self.convert([self.subject.fixed(sizes)], self.subject.declared(), [sizes])

    def two(self, which):
        first, second = capture.TWO[int(which) - 1]
        a = self.subject.choice(first)
        b = self.subject.choice(second, other_than=a)
        return self.convert([self.subject.fixed(s) for s in (a, b)], [], [a, b])

    def planned(self, _):
        captures, checks = self.plan()
        return self.from_plan(captures, checks)

    def from_plan(self, captures, checks):
        options = self.subject.declared()
        for sizes in checks:
            options += ["--check", self.subject.fixed(sizes)]
        verdict = self.convert([self.subject.fixed(s) for s in captures], options,
                               captures + checks)
        if verdict.kind == "refused" and part_ways(self.subject, captures + checks):
            verdict.kind = "parts"
        return verdict

    def plan(self):
        """(sizes of captures, sizes of checks)"""
        usual = []
        for values in capture.THREE:
            usual.append(self.subject.choice(values, usual[-1] if usual else None))
        if not has_plan(self.pt2onnx):
            return usual, []
        case, options = self.subject.case, self.subject.declared()
        names = {n for axes in self.subject.axes() for n in axes.values()}
        for s in case.symbols():
            if s in names and (s in case.least or s in case.most):
                options += ["--dim", "%s=%d..%s" % (s, case.least.get(s, 1), case.most.get(s, ""))]
        p = subprocess.run([self.pt2onnx, "plan", "--json"] + options, capture_output=True,
                           text=True, timeout=judge.SECONDS)
        if p.returncode:
            raise RuntimeError("plan %s: %s" % (" ".join(options), p.stderr))
        plan = json.loads(p.stdout)
        captures, checks = [[self.sizes_of(said, usual[k % 3]) for k, said in enumerate(plan[what])]
                            for what in ("captures", "checks")]
        for k, said in enumerate(plan["ones"]):
            try:
                sizes = self.sizes_of(said, usual[k % 3])
            except ValueError:                  # the case has none such
                continue
            if sizes not in captures + checks:  # nor as many as the plan thinks
                checks.append(sizes)
        return captures, checks

    def sizes_of(self, said, usual, taken=()):
        """Sizes of the case from those that the command names, which may be of axes (x_1)."""
        case, sizes = self.subject.case, {}
        for name, i in zip(self.subject.names(), case.inputs):
            for k, text in enumerate(i.axes):
                n = said.get(text, said.get("%s_%d" % (name, k)))
                if n is not None and not text.isdigit():
                    sizes.update(solved(text, n, sizes))
        wanted = {s: sizes.get(s, usual[s]) for s in case.symbols()}
        return self.subject.near(wanted, taken=taken, large=True)

    def asked(self, _):
        captures, checks = self.plan()
        verdict, wishes = self.from_plan(captures, checks), []
        while True:
            wish = wanted_capture(self.said) if verdict.kind == "refused" else None
            verdict.more.update(asked=len(wishes), open=bool(wish))
            if wish in wishes:
                verdict.why = "asks for what it was given: " + verdict.why
            if not wish or wish in wishes or len(wishes) == QUESTIONS:
                return verdict
            wishes.append(wish)
            captures = captures + [self.sizes_of(wish, captures[0], captures)]
            verdict = self.from_plan(captures, checks)

    def onnx(self, exporter):
        path, sizes = self.subject.onnx(exporter == "dynamo")
        try:
            judge.session_of(path)
        except Exception as e:
            return Verdict("n/a", "the exporter's own file does not load: " + judge.one_line(e))
        return self.convert([path], self.subject.declared(), [sizes])

    def python(self, rest):
        import pt2onnx
        subject, sizes = self.subject, self.subject.choice(capture.SYMBOLIC)
        axes = {n: a for n, a in zip(subject.names(), subject.axes()) if a}
        if os.path.exists(self.out):
            os.remove(self.out)
        try:
            with capture.quiet():
                pt2onnx.export(subject.module(), subject.inputs(sizes), self.out,
                               input_names=subject.names(), dynamic_axes=axes,
                               verify=rest != "noverify")
        except pt2onnx.CaptureError as e:
            return Verdict("n/a", judge.one_line(e))
        except pt2onnx.Pt2OnnxError as e:
            return Verdict("refused", judge.one_line(e), code=type(e).__name__)
        except Exception as e:
            return Verdict("crash", judge.one_line(e), trace=traceback.format_exc())
        return judge.judge(self.out, subject, subject.refs(), [sizes])


def part_ways(subject, captures):
    """No one file is the model: PyTorch records other programs at other sizes."""
    first = subject.program(captures[0])
    return any(subject.program(c) != first for c in captures)


@functools.lru_cache(maxsize=None)
def has_plan(pt2onnx):
    p = subprocess.run([pt2onnx, "plan", "--input", "x:b,t", "--json"], capture_output=True,
                       text=True)
    return p.returncode == 0 and p.stdout.startswith("{")


def wanted_capture(text):
    """The sizes of `a capture at b=2, t=1536 tells which`, or None."""
    found = re.search(r"a capture at ((?:\w+ ?= ?\d+(?:,? (?:and )?)?)+)", text)
    if not found:
        return None
    return {name: int(n) for name, n in re.findall(r"(\w+) ?= ?(\d+)", found.group(1))}


def solved(text, n, known):
    """The symbol of an axis that has size n: of 2*t = 12, t = 6.  What has several, or is known,
    tells nothing."""
    names = [s for s in re.findall(r"[A-Za-z_]\w*", text) if s not in known]
    if len(set(names)) != 1:
        return {}
    value = lambda k: eval(text, {}, dict(known, **{names[0]: k}))
    return {names[0]: min(range(1, 2 * n + 64), key=lambda k: abs(value(k) - n))}


# Processes

def work(pipe, subjects, pt2onnx):
    import torch
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(pt2onnx)) as scratch:
        for index, ways in iter(pipe.recv, None):
            for way in ways:
                pipe.send(("at", way))
                t = Try(subjects[index], way, pt2onnx, scratch)
                try:
                    v = t.verdict()
                except capture.Unexportable as e:
                    v = Verdict("n/a", str(e))
                except Exception as e:
                    v = Verdict("harness", judge.one_line(e), trace=traceback.format_exc())
                pipe.send(("done", (way, t.row, v)))
            pipe.send(("end", None))


class Worker:
    def __init__(self, context, subjects, pt2onnx):
        self.pipe, its = context.Pipe()
        self.process = context.Process(target=work, args=(its, subjects, pt2onnx), daemon=True)
        self.process.start()
        its.close()

    def begin(self, index, ways):
        self.index, self.left, self.at = index, list(ways), ways[0]
        self.heard = time.time()
        self.pipe.send((index, ways))

    def end(self):
        self.pipe.close()
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return self.process.exitcode


def run_all(subjects, ways, pt2onnx, nworker):
    """(index, way, row, verdict) as they come.  A worker that dies gives its way a class, and
    another goes on with those that are left."""
    context = multiprocessing.get_context("fork")
    jobs = collections.deque((k, list(ways)) for k in range(len(subjects)))
    busy = {}

    def begin(worker, job):
        worker.begin(*job)
        busy[worker.pipe] = worker

    while jobs or busy:
        while jobs and len(busy) < nworker:
            begin(Worker(context, subjects, pt2onnx), jobs.popleft())
        ready = multiprocessing.connection.wait(list(busy), timeout=10)
        late = [p for p, w in busy.items() if p not in ready and time.time() - w.heard > SILENCE]
        for pipe in ready + late:
            worker = busy[pipe]
            worker.heard = time.time()
            try:
                what, value = pipe.recv() if pipe in ready else ("late", None)
            except (EOFError, ConnectionError):
                what = "dead"
            if what == "at":
                worker.at = value
            elif what == "done":
                worker.left.remove(value[0])
                yield (worker.index,) + value
            elif what == "end":
                del busy[pipe]
                if jobs:
                    begin(worker, jobs.popleft())
                else:
                    worker.pipe.send(None)
                    worker.end()
            else:
                del busy[pipe]
                code = worker.end()
                why = "no answer in %d s" % SILENCE if what == "late" else "exit code %s" % code
                kind = "crash" if worker.at.startswith("python") else "fails"
                yield worker.index, worker.at, worker.at, Verdict(kind, "the process ended: " + why)
                left = [w for w in worker.left if w != worker.at]
                if left:
                    jobs.appendleft((worker.index, left))


# Results

class Result:
    def __init__(self, module, way, row, v):
        self.module, self.way, self.row = module, way, row
        self.kind, self.why, self.more = v.kind, v.why, v.more

    def line(self):
        where = ""
        if self.kind in BAD and self.more.get("captured"):
            where = " (captured at %s)" % ", ".join(map(judge.words, self.more["captured"]))
        code = " [%s]" % self.more["code"] if "code" in self.more else ""
        return "%-9s %-12s %s%s: %s%s" % (self.kind, self.row, self.module, code, self.why, where)


def counts(results):
    """Rows of the table: [way, counts of KINDS, right of all that are not n/a, and of those that the
    captures are the model of]"""
    tally = {row: collections.Counter() for row in ROWS}
    for r in results:
        tally[r.row][r.kind] += 1
    for row, c in tally.items():
        all_of = sum(c.values()) - c["n/a"]
        possible = all_of - c["parts"] - c["pinned"]
        if c:
            shares = ["%.1f %%" % (100.0 * c["right"] / n) if n else "-" for n in (all_of, possible)]
            yield [row] + [str(c[k]) for k in KINDS] + shares


def print_table(results):
    for row in [["way"] + KINDS + ["right", "possible"]] + list(counts(results)):
        print("%-16s" % row[0] + "".join("%9s" % x for x in row[1:]))


def write_table(path, results, nmodule):
    with open(path, "w") as f:
        f.write("# Ways to say which sizes are dynamic\n\nMade by `test/sizes/suite.py --table`: "
                "%d modules, each file run at %d sizes.\n\n" % (nmodule, capture.TESTS))
        f.write("| way | " + " | ".join(KINDS) + " | right of all but n/a | without parts, pinned |\n")
        f.write("|---" * (len(KINDS) + 3) + "|\n")
        for row in counts(results):
            f.write("| " + " | ".join(row) + " |\n")


def tell_asked(results):
    """How often doing what a refusal says leads to a file."""
    asked = [r for r in results if r.way == "asked" and (r.more.get("asked") or r.more.get("open"))]
    if asked:
        done = [r for r in asked if r.kind not in ("refused", "crash")]
        rounds = sum(r.more["asked"] for r in done) / max(1, len(done))
        print("asked: %d refusals named a capture; with it %d converted, after %.1f on the average"
              % (len(asked), len(done), rounds))


# A slice for machines without PyTorch

def record(folder, subjects, results, pt2onnx):
    """Captures, what PyTorch computed, and the list that run_slice.sh reads."""
    os.makedirs(folder, exist_ok=True)
    lines = ["# What a conversion must come to (right or refused), what PyTorch computed,",
             "# the captures with commas, and options.  Made by suite.py --record."]
    for subject in subjects:
        names = {}                              # of files here
        for r in [r for r in results if r.module == subject.name and "files" in r.more]:
            if not (r.kind == "right" or r.kind == "refused" and r.more["code"] in (3, 4)):
                continue
            files, options = r.more["files"], r.more["options"]
            data = capture.record_data(folder, subject, r.more.get("held"))
            numbers = os.path.join(folder, data)
            why = r.kind == "right" and unverified(pt2onnx, files, options, numbers)
            if why:
                print("not recorded: %s %s: %s" % (subject.name, r.way, why))
                continue
            for f in [f for f in files + options if os.path.isabs(f) and f not in names]:
                names[f] = subject.name + "." + os.path.basename(f).replace("fixed-", "")
                capture.copy_capture(f, os.path.join(folder, names[f]))
            line = " ".join([r.kind, data, ",".join(names[f] for f in files)]
                            + [names.get(w, w) for w in options])
            if line not in lines:
                lines.append(line)
    with open(os.path.join(folder, "list.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")
    print("recorded %d conversions in %s" % (len(lines) - 2, folder))


def unverified(pt2onnx, files, options, data):
    """None, or what the command says, whose tolerance is another."""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "m.onnx")
        verify = ["verify", out, "--data", data, "--rtol", "1e-4", "--atol", "1e-4"]
        for words in ([pt2onnx] + files + [out, "--quiet"] + options, [pt2onnx] + verify):
            p = subprocess.run(words, capture_output=True, text=True)
            if p.returncode:
                return " ".join((p.stdout + p.stderr).split())[-200:]
    return None


def arguments():
    p = argparse.ArgumentParser(usage=__doc__[__doc__.index("suite.py"):])
    p.add_argument("pt2onnx", nargs="?", default=os.path.join(ROOT, "build/release/pt2onnx"))
    p.add_argument("--ways", default="")
    p.add_argument("--modules", default="")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--cache", default=os.path.join(ROOT, "build/sizes"))
    p.add_argument("--list", default="")
    p.add_argument("--json")
    p.add_argument("--table")
    p.add_argument("--record")
    return p.parse_args()


def copied(path, folder):
    """A build may go on meanwhile."""
    if not os.path.exists(path):
        raise SystemExit("%s is not there" % path)
    return shutil.copy(path, folder)


def all_results(subjects, ways, a):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        pt2onnx = copied(a.pt2onnx, folder)
        if any(w.startswith("python") for w in ways):
            os.environ["PT2ONNX_LIBRARY"] = copied(os.environ["PT2ONNX_LIBRARY"], folder)
        if {"planned", "asked"} & set(ways) and not has_plan(pt2onnx):
            print("note: this pt2onnx has no `plan`: three choices of sizes stand for it")
        for index, way, row, verdict in run_all(subjects, ways, pt2onnx, a.jobs):
            result = Result(subjects[index].name, way, row, verdict)
            results.append((index, ways.index(way), result))
            if sys.stderr.isatty():
                total = len(subjects) * len(ways)
                print("\r%d of %d " % (len(results), total), end="", file=sys.stderr)
        results = [r for _, _, r in sorted(results, key=lambda r: r[:2])]
        if a.record:
            record(a.record, subjects, results, pt2onnx)
    return results


def main():
    a = arguments()
    ways = [w for w in WAYS if any(w.startswith(x) for x in a.ways.split(","))]
    subjects = [s for s in capture.load(os.path.join(HERE, "modules"), os.path.abspath(a.cache))
                if re.search(a.modules, s.name)]
    began = time.time()
    results = all_results(subjects, ways, a)
    for r in results:
        if r.kind in BAD | {"branch"} | set(a.list.split(",")):
            print(r.line())
        if r.kind == "harness":
            print(r.more["trace"])
    print_table(results)
    tell_asked(results)
    illegal = [line for s in subjects for line in s.refusals()]
    if illegal:
        print("PyTorch refuses %d sizes that cases allow%s" % (
            len(illegal), ":" if "illegal" in a.list else " (--list illegal)"))
        print("".join(line[:200] + "\n" for line in illegal if "illegal" in a.list), end="")
    few = [s.name for s in subjects if len(s.refs()) < capture.TESTS]
    if few:
        print("tested at fewer than %d sizes: %s" % (capture.TESTS, " ".join(few)))
    if a.json:
        with open(a.json, "w") as f:
            json.dump([vars(r) for r in results], f, indent=0)
    if a.table:
        write_table(a.table, results, len(subjects))
    print("%.0f s" % (time.time() - began))
    failed = sum(r.kind in BAD for r in results)
    print("%d passed, %d failed" % (sum(r.kind != "n/a" for r in results) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
