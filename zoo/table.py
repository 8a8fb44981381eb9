"""Results: read, written, and told as README.md and as causes."""
import collections
import json
import os
import re

WAYS = ["symbolic", "python", "dynamo", "script", "one", "planned"]
OURS = ["symbolic", "python", "one", "planned"]
THEIRS = ["dynamo", "script"]
NOT_TRIED = {"n/a", "harness"}
UNSEEN = NOT_TRIED | {"nocapture"}
ORDER = ["wrong", "fails", "crash", "memory", "late", "excluded", "refused", "nocapture", "n/a",
         "harness"]


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def write(path, result):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "%s.part%d" % (path, os.getpid())
    with open(part, "w") as f:
        json.dump(result, f)
    os.replace(part, path)


def cause(why):
    """A reason without what is one model's own."""
    why = re.sub(r"^at [\w= ]+: ", "", why)
    why = re.sub(r"0x[0-9a-f]+|'[^' ]*\d[^' ]*'|\b[a-z_]+_\d+\b|\d+(\.\d+)?(e[-+]\d+)?", "N", why)
    return " ".join(why.split())[:110]


def causes(results, ways=OURS):
    """Most frequent first: way and class, the reason, an example, the models."""
    groups = collections.defaultdict(list)
    for r in results:
        if r["way"] in ways and r["kind"] not in {"right"} | NOT_TRIED:
            groups[r["kind"], cause(r["why"])].append(r)
    lines = []
    for (kind, _), of in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        models = collections.defaultdict(list)
        for r in of:
            models["%s %s" % (r["kit"], r["model"])].append(r["way"])
        lines.append("## %d: %s: %s" % (len(of), kind, of[0]["why"][:300]))
        lines += ["   %s (%s)" % (m, ",".join(w)) for m, w in models.items()]
        lines.append("")
    return "\n".join(lines)


def cell(of):
    """right of those that PyTorch captures by this way; others after a plus"""
    seen = [r for r in of if r["kind"] not in UNSEEN]
    if not of:
        return ""
    right = sum(r["kind"] == "right" for r in seen)
    return "%d of %d" % (right, len(seen))


def grid(title, rows, results, key):
    lines = ["| %s | models | %s |" % (title, " | ".join(WAYS)), "|---" * (len(WAYS) + 2) + "|"]
    for row in rows:
        of = [r for r in results if key(r) == row]
        n = len({(r["kit"], r["model"]) for r in of})
        cells = [cell([r for r in of if r["way"] == w]) for w in WAYS]
        lines.append("| %s | %d | %s |" % (row, n, " | ".join(cells)))
    n = len({(r["kit"], r["model"]) for r in results})
    cells = [cell([r for r in results if r["way"] == w]) for w in WAYS]
    lines.append("| all | %d | %s |" % (n, " | ".join(cells)))
    return lines


def make(path, results, missing, total):
    """What is before the line <!-- made by --table --> is written by hand."""
    mark = "<!-- made by --table -->"
    head = ""
    if os.path.exists(path):
        with open(path) as f:
            head = f.read().split(mark)[0]
    lines = []
    tried = [r for r in results if r["kind"] not in NOT_TRIED]
    by_model = collections.defaultdict(dict)
    for r in tried:
        by_model[r["kit"], r["model"]][r["way"]] = r
    names = {m for _, m in by_model}
    lines += ["%d architectures, %d with each version of transformers counted; %d of %d tries were "
              "made." % (len(names), len(by_model), len(results), total), ""]
    lines += summary(by_model) + [""]
    families = sorted({r["family"] for r in tried})
    lines += grid("family", families, tried, lambda r: r["family"]) + [""]
    lines += grid("kit", [k for k in ("tf4", "tf5", "more", "torch") if any(
        r["kit"] == k for r in tried)], tried, lambda r: r["kit"]) + [""]
    lines += kinds(tried) + [""]
    if missing:
        lines += ["Not tried: " + ", ".join(missing), ""]
    lines += exceptions(by_model) + [""]
    lines += not_right(by_model)
    with open(path, "w") as f:
        f.write(head + mark + "\n" + "\n".join(lines) + "\n")


def summary(by_model):
    """Of the models that PyTorch captures by any way."""
    can = {k: w for k, w in by_model.items()
           if any(r["kind"] not in UNSEEN and (r["way"] not in THEIRS or r["kind"] == "right")
                  for r in w.values())}
    some = sum(any(w.get(x, {}).get("kind") == "right" for x in OURS) for w in can.values())
    theirs = sum(any(w.get(x, {}).get("kind") == "right" for x in THEIRS) for w in can.values())
    wrong = sum(r["kind"] in ("wrong", "fails") for w in can.values() for x, r in w.items()
                if x in OURS)
    return ["Of the %d that PyTorch captures by any way, %d (%.1f %%) come out right by one of "
            "ours, "
            "%d by one of torch.onnx's; files of ours that are wrong or fail: %d." % (
                len(can), some, 100.0 * some / max(1, len(can)), theirs, wrong)]


def kinds(tried):
    names = ["right"] + [k for k in ORDER if k not in NOT_TRIED]
    lines = ["| way | %s |" % " | ".join(names), "|---" * (len(names) + 1) + "|"]
    for w in WAYS:
        count = collections.Counter(r["kind"] for r in tried if r["way"] == w)
        if count:
            lines.append("| %s | %s |" % (w, " | ".join(str(count[k]) for k in names)))
    return lines


def exceptions(by_model):
    """Right by one of torch.onnx's ways and by none of ours."""
    names = ["%s (%s)" % (m, kit) for (kit, m), w in sorted(by_model.items())
             if any(w.get(x, {}).get("kind") == "right" for x in THEIRS)
             and any(x in w for x in OURS)
             and not any(w.get(x, {}).get("kind") == "right" for x in OURS)]
    return ["Right by one of torch.onnx's exporters and by none of ours: " +
            (", ".join(names) if names else "none") + "."]


def not_right(by_model):
    lines = ["## What is not right", "", "| model | kit | way | | reason |", "|---" * 5 + "|"]
    for (kit, model), ways in sorted(by_model.items(), key=lambda x: (x[0][1], x[0][0])):
        groups = collections.OrderedDict()
        for w in OURS:
            r = ways.get(w)
            if r and r["kind"] != "right":
                groups.setdefault((r["kind"], few_words(r["why"])), []).append(w)
        for (kind, why), of in groups.items():
            lines.append("| %s | %s | %s | %s | %s |" % (model, kit, ", ".join(of), kind, why))
    return lines


def few_words(why):
    text = " ".join(why.replace("|", "/").replace("<", "&lt;").split())
    return text if len(text) <= 100 else text[:97] + "..."
