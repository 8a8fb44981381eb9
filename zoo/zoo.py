"""How many of the models that people use become right ONNX files, by which way.

usage: zoo.py [--models REGEX] [--ways symbolic,python,..] [--kits tf4,tf5,more,torch]
              [--families REGEX] [--jobs N] [--redo KIND,..] [--keep] [--label TEXT]
              [--results DIR] [--pt2onnx FILE] [--list KIND,..] [--table FILE.md] [--causes]
              [--slice] [--dry]

Models are in models/, made from configurations with random weights; ways and classes in ways.py.
Every result is a file in --results (build/zoo), with a label: the build of the converter, for
torch.onnx its version.  What has a result with the same label is not tried again, but for --redo
of the classes it names; --keep takes results of any label.  --table writes what all results say,
--causes groups what is not right by its reason.  --slice tries those of slice.txt, each in the ways
given there, which must be right: a test, that says 77 where packages cannot be had.  --dry tries
nothing: it tells what would be, or with --causes, --list, --table what is known.
"""
import argparse
import collections
import glob
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import entry
import kits
import table

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
WAYS = table.WAYS
SECONDS, BYTES = 200, 10 << 30              # of one try; seconds of computing
CONVERTER = {"symbolic", "one", "planned", "python"}


class Job:
    def __init__(self, found, kit, way):
        self.entry, self.kit, self.way = found, kit, way

    def path(self, results):
        return os.path.join(results, self.kit, self.entry.name, self.way + ".json")

    def words(self):
        return "%s %s %s" % (self.kit, self.entry.name, self.way)


class Nursery:
    """A process for one kit."""

    def __init__(self, kit, environment):
        path = [kits.folder_of(kit)] if kits.KITS[kit] else []
        e = dict(os.environ, **environment)
        e["PYTHONPATH"] = os.pathsep.join([e["PYTHONPATH"]] + path)
        self.kit, self.said = kit, tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "nursery.py"), kit],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=e,
                                        stderr=self.said, text=True)
        if self.process.stdout.readline().strip() != '"ready"':
            self.process.wait()
            self.said.seek(0)
            raise kits.Missing("%s: its process does not start: %s" % (
                kit, self.said.read().decode(errors="replace").strip()[-500:]))

    def ask(self, job):
        try:
            print(json.dumps(job), file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return None

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def file_hash(paths):
    h = hashlib.sha1()
    for path in paths:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()[:10]


def label_of(a, way):
    """Tells one build from another."""
    if a.label:
        return a.label
    if way in CONVERTER:
        package = sorted(glob.glob(os.path.join(ROOT, "python/pt2onnx/*.py")))
        return file_hash([a.pt2onnx, a.library] + package)
    versions = glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages/*.dist-info"))
    names = [os.path.basename(v) for v in versions]
    return " ".join(sorted(n[:-10] for n in names if re.match(r"(torch|onnxscript)-", n)))


def known(job, a, labels):
    """The result on disk that makes a try needless."""
    result = table.read(job.path(a.results))
    if not result or result["digest"] != job.entry.digest() or \
            result["kind"] in a.redo.split(",") + ["harness"]:
        return None
    return result if a.keep or result["label"] == labels[job.way] else None


def run(jobs, a, labels, note):
    """Tries all, in order of ways; one thread for each of --jobs, which changes its nursery
    when the kit does."""
    todo = queue.Queue()
    for job in jobs:
        todo.put(job)
    lock, missing = threading.Lock(), {}
    with tempfile.TemporaryDirectory(prefix="zoo") as scratch:
        copy = shutil.copy(a.pt2onnx, scratch)          # a build may go on meanwhile
        package = shutil.copytree(os.path.join(ROOT, "python"), os.path.join(scratch, "python"))
        environment = {"PT2ONNX_LIBRARY": shutil.copy(a.library, scratch), "PYTHONPATH": package}

        def work():
            nursery = None
            while True:
                try:
                    job = todo.get_nowait()
                except queue.Empty:
                    break
                if job.kit in missing:
                    continue
                try:
                    with lock:
                        kits.folder_of(job.kit)
                    if nursery is None or nursery.kit != job.kit:
                        if nursery:
                            nursery.end()
                        nursery = None
                        nursery = Nursery(job.kit, environment)
                except kits.Missing as e:
                    missing[job.kit] = str(e)
                    continue
                answer = nursery.ask({"model": job.entry.name, "way": job.way, "pt2onnx": copy,
                                      "seconds": a.seconds, "bytes": BYTES})
                if answer is None:
                    nursery.process.kill()
                    nursery.process.wait()
                    nursery = None
                    answer = {"kind": "harness", "why": "the kit's process ended", "seconds": 0}
                answer.update(model=job.entry.name, family=job.entry.family, kit=job.kit,
                              way=job.way, label=labels[job.way], digest=job.entry.digest())
                table.write(job.path(a.results), answer)
                with lock:
                    note(job, answer)
            if nursery:
                nursery.end()

        threads = [threading.Thread(target=work, daemon=True) for _ in range(a.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    return missing


class Progress:
    def __init__(self, total):
        self.total, self.done, self.began = total, 0, time.time()
        self.kinds = collections.Counter()

    def __call__(self, job, answer):
        self.done += 1
        self.kinds[answer["kind"]] += 1
        said = "%d of %d, %.0f s: %s" % (self.done, self.total, time.time() - self.began, ", ".join(
            "%d %s" % (n, k) for k, n in self.kinds.most_common()))
        if sys.stderr.isatty():
            print("\r\033[K" + said, end="", file=sys.stderr, flush=True)
        else:
            why = answer["why"] and ": " + answer["why"][:160]
            print("[%s] %s %s%s" % (said, job.words(), answer["kind"], why), flush=True)


def chosen(a):
    ways = [w for w in WAYS + ["eager"] if w in (a.ways.split(",") if a.ways else WAYS)]
    if a.ways and set(a.ways.split(",")) != set(ways):
        raise SystemExit("no such way: %s" % a.ways)
    wanted = [(e, kit) for e in entry.load() for kit in e.kits
              if re.search(a.models, e.name) and re.search(a.families, e.family)
              and kit in (a.kits.split(",") if a.kits else kits.KITS)]
    order = a.kits.split(",") if a.kits else list(kits.KITS)
    wanted.sort(key=lambda x: order.index(x[1]))
    return [Job(e, kit, way) for way in ways for e, kit in wanted]


def slice_jobs():
    entries = {e.name: e for e in entry.load()}
    with open(os.path.join(HERE, "slice.txt")) as f:
        lines = [line.split("#")[0].split() for line in f]
    return [Job(entries[words[1]], words[0], way) for words in lines if words for way in words[2:]]


def arguments():
    p = argparse.ArgumentParser(usage=__doc__[__doc__.index("zoo.py"):])
    p.add_argument("--models", default="")
    p.add_argument("--families", default="")
    p.add_argument("--ways", default="")
    p.add_argument("--kits", default="")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--seconds", type=int, default=SECONDS)
    p.add_argument("--redo", default="")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--label", default="")
    p.add_argument("--results", default=os.path.join(ROOT, "build", "zoo"))
    p.add_argument("--pt2onnx", default=os.path.join(ROOT, "build/release/pt2onnx"))
    p.add_argument("--library", default=os.environ.get(
        "PT2ONNX_LIBRARY", os.path.join(ROOT, "build/release/libpt2onnx.so")))
    p.add_argument("--list", default="")
    p.add_argument("--table")
    p.add_argument("--causes", action="store_true")
    p.add_argument("--slice", action="store_true")
    p.add_argument("--dry", action="store_true")
    return p.parse_args()


def main():
    a = arguments()
    jobs = slice_jobs() if a.slice else chosen(a)
    labels = {way: label_of(a, way) for way in WAYS + ["eager"]}
    todo = [job for job in jobs if a.slice or not known(job, a, labels)]
    print("%d models, %d tries, %d of them to make" % (
        len({j.entry.name for j in jobs}), len(jobs), len(todo)), flush=True)
    if a.dry and not (a.causes or a.table or a.list):
        print("\n".join(job.words() for job in todo))
    missing = {} if a.dry else run(todo, a, labels, Progress(len(todo)))
    for kit, why in missing.items():
        print("zoo: not tried, packages cannot be had: " + why)
    if a.slice and missing:
        return 77
    results = [r for r in (table.read(job.path(a.results)) for job in jobs) if r]
    for r in results:
        if r["kind"] in a.list.split(",") or a.slice and r["kind"] != "right":
            print("%-9s %s %s %s: %s" % (r["kind"], r["kit"], r["model"], r["way"], r["why"]))
    if a.causes:
        print(table.causes(results))
    if a.table:
        everything = [table.read(job.path(a.results)) for job in chosen(arguments_of_all())]
        known_ones = [r for r in everything if r]
        table.make(a.table, known_ones, missing, len(everything))
    right = sum(r["kind"] == "right" for r in results)
    print("%d passed, %d failed" % (right, len(results) - right) if a.slice
          else "%d right of %d" % (right, len(results)))
    return 1 if a.slice and right < len(results) else 0


def arguments_of_all():
    return argparse.Namespace(models="", families="", ways="", kits="")


if __name__ == "__main__":
    sys.exit(main())
