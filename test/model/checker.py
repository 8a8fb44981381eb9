"""onnx.checker on every model the model tests wrote, with full type and shape checks.

usage: checker.py PT2ONNX
"""
import os
import subprocess
import sys
import tempfile

import onnx

here = os.path.dirname(os.path.abspath(__file__))
passed = failed = 0
with tempfile.TemporaryDirectory() as folder:
    for line in open(os.path.join(here, "list.txt")):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        source = os.path.join(here, "data", words[0] + ".pt2")
        for opset in ("17", "20", "23"):
            target = os.path.join(folder, "m.onnx")
            p = subprocess.run([sys.argv[1], source, target, "--quiet", "--opset", opset] + words[1:])
            try:
                assert p.returncode == 0, "exit code %d" % p.returncode
                onnx.checker.check_model(target, full_check=True)
                passed += 1
            except Exception as e:
                print("%s, opset %s: %s" % (words[0], opset, str(e)[:500]))
                failed += 1
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
