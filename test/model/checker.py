"""onnx.checker on every model the model tests wrote, with full type and shape checks.

usage: checker.py PT2ONNX
"""
import os
import subprocess
import sys
import tempfile

import onnx

here = os.path.dirname(os.path.abspath(__file__))
refused = {line.split(" : ")[0] for line in open(os.path.join(here, "refused.txt"))}
passed = failed = 0
with tempfile.TemporaryDirectory() as folder:
    for line in open(os.path.join(here, "list.txt")):
        words = line.split("|")[0].split()
        if not words or words[0].startswith("#") or words[1] in refused:
            continue
        sources = [os.path.join(here, "data", c + ".pt2") for c in words[1].split(",")]
        for opset in ("17", "20", "23"):
            target = os.path.join(folder, "m.onnx")
            p = subprocess.run([sys.argv[1]] + sources + [target, "--quiet", "--opset", opset] + words[2:],
                               capture_output=True, text=True)
            if p.returncode == 3 and opset != "20":     # an operator that this opset lacks: refused, and said
                print("%s is refused at opset %s: %s" % (words[1], opset, p.stderr.strip().split("\n")[0]))
                continue
            try:
                assert p.returncode == 0, "exit code %d: %s" % (p.returncode, p.stderr)
                onnx.checker.check_model(target, full_check=True)
                passed += 1
            except Exception as e:
                print("%s, opset %s: %s" % (words[1], opset, str(e)[:500]))
                failed += 1
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
