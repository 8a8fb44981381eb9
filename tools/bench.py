"""Shows that conversion time grows with the graph and not with the weights.

usage: bench.py PT2ONNX

PyTorch captures three layers of linear, relu and layer_norm.  From that archive larger ones are
made as PyTorch would save them: the last layer repeated with names of its own, its sizes and
weights scaled.  (PyTorch itself takes a quarter of an hour to capture 10,000 layers.)  Times are
CPU seconds of the whole command, the best of several runs.
"""
import json, os, resource, subprocess, sys, tempfile, warnings, zipfile

WIDTH = 8               # of the captured layers; no other size in the archive is 8
RUNS = 3


def capture(path):
    import torch

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(WIDTH, WIDTH)
            self.norm = torch.nn.LayerNorm(WIDTH)

        def forward(self, x):
            return self.norm(torch.relu(self.fc(x)))

    model = torch.nn.Sequential(Layer(), Layer(), Layer()).eval()
    batch = torch.export.Dim("batch")
    torch.export.save(torch.export.export(model, (torch.randn(3, WIDTH),),
                                          dynamic_shapes=({0: batch},)), path)


def walk(x, on_str, on_int):
    """A copy of a JSON tree with its strings and its sizes mapped."""
    if isinstance(x, dict):
        if set(x) == {"as_int"}:
            return {"as_int": on_int(x["as_int"])}
        if set(x) == {"as_ints"}:
            return {"as_ints": [on_int(i) for i in x["as_ints"]]}
        return {on_str(k): walk(v, on_str, on_int) for k, v in x.items()}
    if isinstance(x, list):
        return [walk(v, on_str, on_int) for v in x]
    return on_str(x) if isinstance(x, str) else x


def as_layer(k):
    """Names of the last captured layer, 2, as those of layer k."""
    names = {"layer_norm_1": f"layer_norm_{k - 1}"}
    for stem in ("linear", "relu", "layer_norm"):
        names[f"{stem}_2"] = f"{stem}_{k}"
    for part in ("fc", "norm"):
        for kind in ("weight", "bias"):
            names[f"p_2_{part}_{kind}"] = f"p_{k}_{part}_{kind}"
            names[f"2.{part}.{kind}"] = f"{k}.{part}.{kind}"

    def rename(s):
        if s.startswith("L__self__"):
            return s.replace("__self__2", f"__self__{k}").replace(",2", f",{k}")
        return names.get(s, s)
    return rename


def belongs_to_last(text):
    return any(s in text for s in ('"p_2_', '"linear_2"', '"relu_2"', '"layer_norm_2"', '"2.'))


def repeated(items, nlayer, on_int):
    """The items of a list or dict, those of the last layer once for each layer from 2 on."""
    pairs = list(items.items()) if isinstance(items, dict) else [(None, v) for v in items]
    last = [p for p in pairs if belongs_to_last(json.dumps(p))]
    first = [i for i, p in enumerate(pairs) if p in last]
    rest = [p for p in pairs if p not in last]
    at = first[0] if first else len(rest)
    made = [walk([list(p)], as_layer(k), on_int)[0] for k in range(2, nlayer) for p in last]
    made = ([walk(list(p), str, on_int) for p in rest[:at]] + made +
            [walk(list(p), str, on_int) for p in rest[at:]])
    return {k: v for k, v in made} if isinstance(items, dict) else [v for _, v in made]


def grow(source, path, nlayer, width):
    """An archive of nlayer layers of this width; its weights are zeros."""
    on_int = lambda i: width if i == WIDTH else i
    old, new = zipfile.ZipFile(source), zipfile.ZipFile(path, "w")
    root = old.namelist()[0].split("/")[0]
    model = json.loads(old.read(f"{root}/models/model.json"))
    graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
    for holder, key in ((graph, "inputs"), (graph, "nodes"), (graph, "tensor_values"),
                        (signature, "input_specs")):
        holder[key] = repeated(holder[key], nlayer, on_int)
    last = lambda tree: walk(tree, as_layer(nlayer - 1), on_int)
    graph["outputs"], signature["output_specs"] = (
        last(graph["outputs"]), last(signature["output_specs"]))
    config = json.loads(old.read(f"{root}/data/weights/model_weights_config.json"))
    config["config"] = repeated(config["config"], nlayer, on_int)
    for i, entry in enumerate(config["config"].values()):
        entry["path_name"] = f"weight_{i}"
        size = 4
        for s in entry["tensor_meta"]["sizes"]:
            size *= s["as_int"]
        with new.open(f"{root}/data/weights/weight_{i}", "w") as f:
            for start in range(0, size, 1 << 20):
                f.write(bytes(min(1 << 20, size - start)))
    for info in old.infolist():
        if info.filename.endswith("models/model.json"):
            new.writestr(info.filename, json.dumps(model))
        elif info.filename.endswith("model_weights_config.json"):
            new.writestr(info.filename, json.dumps(config))
        elif "/data/weights/" not in info.filename:
            new.writestr(info.filename, old.read(info.filename))
    new.close()


def seconds(command):
    """CPU seconds, best of RUNS."""
    best = None
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(f"bench: {' '.join(command)}\n{done.stderr}")
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = spent if best is None else min(best, spent)
    return best


def main():
    warnings.simplefilter("ignore")
    tool = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        source, path, out = (os.path.join(folder, name)
                             for name in ("three.pt2", "m.pt2", "m.onnx"))
        capture(source)
        print("layers    calls      time   per call")
        rates = []
        for nlayer in (100, 1000, 10000):
            grow(source, path, nlayer, WIDTH)
            spent = seconds([tool, path, out, "--quiet"])
            rates.append(spent / (3 * nlayer))
            print(f"{nlayer:6} {3 * nlayer:8} {spent:8.3f} s {rates[-1] * 1e6:7.1f} us")
        print(f"10000 against 1000 layers: {rates[2] / rates[1]:.2f} times the time per call\n")
        print("weights       time, --external-data link")
        times = []
        for label, width in (("1 MB", 256), ("1 GB", 8192)):
            grow(source, path, 4, width)
            times.append(seconds([tool, path, out, "--quiet", "--external-data", "link"]))
            print(f"{label:>7} {times[-1]:9.4f} s")
        print(f"1 GB against 1 MB: {times[1] / max(times[0], 1e-4):.2f} times the time")


main()
