"""onnx.checker on every model that run.sh writes, and that what no size touches is as it was.

usage: checker.py PT2ONNX
"""
import os
import subprocess
import sys
import tempfile

import onnx

here = os.path.dirname(os.path.abspath(__file__))
passed = failed = 0


def kept(old, new, renamed):
    """Nodes in order under their names, documentation, metadata, imports, functions; types hold their element type."""
    added = len(new.graph.node) - len(old.graph.node)
    for a, b in zip(old.graph.node, new.graph.node[added:]):
        assert (a.name, a.op_type, a.domain, a.doc_string) == (b.name, b.op_type, b.domain, b.doc_string), a.name
        assert renamed or list(a.output) == list(b.output), a.name
    own = "pt2onnx.dims"                        # what the sizes need, which every conversion says
    assert [p for p in old.metadata_props if p.key != own] == [p for p in new.metadata_props if p.key != own]
    assert any(p.key == own for p in new.metadata_props)
    for field in ("opset_import", "functions", "doc_string", "ir_version", "producer_name"):
        assert getattr(old, field) == getattr(new, field), field
    assert old.graph.doc_string == new.graph.doc_string and old.graph.name == new.graph.name
    added = len(new.graph.initializer) - len(old.graph.initializer)
    for a, b in zip(old.graph.initializer, new.graph.initializer[added:]):
        assert a.name == b.name and a.dims == b.dims and onnx.numpy_helper.to_array(a).tobytes() == \
            onnx.numpy_helper.to_array(b).tobytes(), a.name
    assert old.graph.sparse_initializer == new.graph.sparse_initializer


with tempfile.TemporaryDirectory() as folder:
    for line in open(os.path.join(here, "list.txt")):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        source, target = os.path.join(here, "data", words[0] + ".onnx"), os.path.join(folder, "m.onnx")
        p = subprocess.run([sys.argv[1], source, target, "--quiet"] + words[2:], capture_output=True, text=True)
        try:
            assert p.returncode == 0, "exit code %d: %s" % (p.returncode, p.stderr)
            if words[0] not in ("custom", "sparse"):        # its shape inference knows neither
                onnx.checker.check_model(target, full_check=True)
            kept(onnx.load(source), onnx.load(target), "--output-names" in words)
            passed += 1
        except Exception as e:
            print("%s: %s" % (line.strip(), str(e)[:500]))
            failed += 1
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
