"""A process that has a kit's packages and tries models, each in a process forked from it.

Reads lines of JSON, {"model", "way", "seconds", "bytes", "pt2onnx"}, and answers each with a line,
{"kind", "why", "seconds"}.  A try that computes longer, or takes more memory, ends; one that waits
does after WAIT times that."""
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

WAIT = 10           # a machine may have much else to do
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  TRANSFORMERS_VERBOSITY="error")


def child(job, pipe):
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 5))
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (job["bytes"], most))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    import entry, specimen, ways
    found = next(e for e in entry.load() if e.name == job["model"])
    try:
        v = ways.try_one(specimen.Specimen(found), job["way"], job["pt2onnx"], job["folder"])
        answer = {"kind": v.kind, "why": v.why}
    except BaseException as e:
        answer = {"kind": "harness", "why": "%s: %s" % (type(e).__name__, e),
                  "trace": traceback.format_exc()}
    with os.fdopen(pipe, "w") as f:
        json.dump(answer, f)


def end(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def attempt(job):
    began = time.time()
    job["folder"] = tempfile.mkdtemp(prefix="zoo")
    ours, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            child(job, its)
        finally:
            os._exit(0)
    os.close(its)
    text, late = b"", False
    with os.fdopen(ours, "rb", buffering=0) as f:
        while True:
            left = began + WAIT * job["seconds"] - time.time()
            if left <= 0 or not select.select([f], [], [], left)[0]:
                late = True
                break
            part = f.read(65536)
            if not part:
                break
            text += part
    if late:
        end(pid)
    _, status, used = os.wait4(pid, 0)
    end(pid)                                    # what it may have left behind
    shutil.rmtree(job["folder"], ignore_errors=True)
    if late or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        answer = {"kind": "late", "why": "no end within %d s" % job["seconds"]}
    elif text:
        answer = json.loads(text)
    else:
        answer = {"kind": "crash", "why": "the process ended with status %d" % status}
    answer.update(seconds=round(time.time() - began, 1),
                  cpu=round(used.ru_utime + used.ru_stime, 1))
    return answer


def main():
    sys.path[:0] = [HERE, os.path.join(ROOT, "test", "sizes")]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                               # what packages print is no answer
    import torch
    import torch.onnx, onnxscript                       # here once, and not in every try
    torch.set_num_threads(1)
    import onnxruntime
    capi = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
    os.environ.setdefault("PT2ONNX_ORT", capi)
    import entry, specimen, ways, pt2onnx
    kit = sys.argv[1]
    if kit == "more":
        import kits
        kept = kits.stand_in()
        import timm, torchvision
    if kit.startswith("tf"):
        import transformers
        from transformers import LlamaForCausalLM, BertModel, ViTModel      # what nearly all import
    entry.load()
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(attempt(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
