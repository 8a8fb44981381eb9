"""Every model of list.txt at random sizes within what its metadata allow: it must run, with outputs of the declared shapes.

usage: sizes.py PT2ONNX [--live]

Sizes are drawn from a fixed seed.  With --live the numbers are PyTorch's: the modules of make_models.py are run at random
sizes, and what each conversion of them gives is held against that.  Without it only Python itself is needed.
"""
import json
import math
import operator
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
ROUNDS = 2
# Indices are drawn as 0 or 1: there must be two rows for them.
LEAST = {"messages": 2}
passed = failed = 0


def lines():
    """(data, captures, options, options of verify) of every conversion that is not refused."""
    refused = {line.split(" : ")[0].strip() for line in open(os.path.join(HERE, "refused.txt"))}
    for line in open(os.path.join(HERE, "list.txt")):
        words, _, checks = line.partition("|")
        words = words.split()
        if words and not words[0].startswith("#") and words[1] not in refused:
            yield words[0], words[1].split(","), words[2:], checks.split()


def convert(command, captures, options, model):
    sources = [os.path.join(DATA, c + ".pt2") for c in captures]
    p = subprocess.run([command] + sources + [model, "--quiet"] + options, capture_output=True, text=True)
    return p.stderr if p.returncode else None


def metadata(command, model):
    text = subprocess.run([command, "inspect", model], capture_output=True, text=True).stdout
    return json.loads(re.search(r"pt2onnx\.dims: (.*)", text).group(1))


def holds(need, sizes):
    try:
        return eval(need, {"math": math, "operator": operator}, sizes)
    except (NameError, ZeroDivisionError):      # it is about a size that the data decide, or about none
        return True


def draw(dims, least, rng):
    """A size for each symbol that satisfies every need; None: there is none near."""
    for _ in range(5000):
        sizes = {}
        for name, s in dims["symbols"].items():
            low = max(s.get("min", 0), least)
            high = min(s.get("max", low + 24), max(low + 4, 2 * s.get("captured", 4) + 3))
            sizes[name] = low if rng.random() < 0.2 else rng.randint(low, high)
        if all(holds(n, sizes) for n in dims["needs"]):
            return sizes
    return None


def report(what, ok, why):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print("%s: %s" % (what, why))


def verify(command, model, options):
    p = subprocess.run([command, "verify", model] + options, capture_output=True, text=True)
    return p.returncode == 0 and ("[ok]" in p.stdout or "[runs]" in p.stdout), p.stdout + p.stderr


def run_at_random(command, model, what, name, rng):
    dims = metadata(command, model)
    for _ in range(ROUNDS if dims["symbols"] else 1):
        sizes = draw(dims, LEAST.get(name, 1), rng)
        if sizes is None:
            report(what, False, "no sizes satisfy %s" % dims["needs"])
            return
        text = " ".join("%s=%d" % s for s in sizes.items())
        ok, why = verify(command, model, ["--sizes", text])
        report(what + " at " + text, ok, why)


def live_records(folder, rng):
    """NAME -> an .npz of runs at random sizes, for the modules whose weights are those of the captures."""
    import numpy as np
    import torch
    import make_models
    make_models.define_vision()
    files = {}
    for name, (cls, make, sizes, axes, fixed, one) in make_models.MODELS.items():
        torch.manual_seed(0)
        module = cls().eval()
        make_models.randomize(module)
        had = np.load(os.path.join(DATA, name + ".npz"))
        record = {}
        with torch.no_grad():
            first = run(module, [torch.from_numpy(had["s0.in.%d" % i]) for i in range(len(axes))])
            if not all(np.allclose(t.numpy(), had["s0.out.%d" % j], 1e-4, 1e-4) for j, t in enumerate(first)):
                print("%s: this PyTorch makes other weights than the captures have" % name)
                continue
            for k in range(ROUNDS):
                args, out = run_somewhere(module, make, sizes[0], rng)
                for i, t in enumerate(args):
                    record["s%d.in.%d" % (k, i)] = t.numpy()
                for j, t in enumerate(out):
                    record["s%d.out.%d" % (k, j)] = t.numpy()
        files[name] = os.path.join(folder, name + ".npz")
        np.savez(files[name], **record)
    return files


def run_somewhere(module, make, near, rng):
    """Inputs and outputs at random sizes that PyTorch itself accepts."""
    for _ in range(100):
        args = make(*[rng.randint(max(1, s - 60), 2 * s + 2 if s < 60 else s + 60) for s in near])
        try:
            return args, run(module, args)
        except (RuntimeError, IndexError):
            pass
    raise RuntimeError("PyTorch refuses all sizes near %s" % (near,))


def run(module, args):
    out = module(*[t.clone() for t in args])
    return out if isinstance(out, tuple) else (out,)


def main():
    command, live = sys.argv[1], "--live" in sys.argv
    rng = random.Random(20240229)
    with tempfile.TemporaryDirectory() as folder:
        files = live_records(folder, rng) if live else {}
        model = os.path.join(folder, "m.onnx")
        for name, captures, options, checks in lines():
            what = ",".join(captures)
            if live and name not in files:
                continue
            why = convert(command, captures, options, model)
            if why:
                report(what, False, why)
            elif live:
                report(what, *verify(command, model, ["--data", files[name], "--rtol", "1e-4", "--atol", "1e-4"] + checks))
            else:
                run_at_random(command, model, what, name, rng)
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
