# The front door; CMakeLists.txt describes the build.
#   make        the command, at build/release/pt2onnx
#   make demo   converts the examples and runs them at several sizes
#   make test   everything, under the sanitizers
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
ORT = .deps/onnxruntime

all: release

deps:
	@tools/get_tools

$(ORT)/libonnxruntime.so: | deps
	@tools/get_ort $(ORT)

release asan dev: | deps
	@cmake --preset $@ > build-$@.log 2>&1 || { cat build-$@.log; exit 1; }
	@cmake --build build/$@ -j $(JOBS) >> build-$@.log 2>&1 || { cat build-$@.log; exit 1; }
	@rm -f build-$@.log

demo: release $(ORT)/libonnxruntime.so
	@PT2ONNX_ORT=$(ORT) sh examples/demo.sh build/release/pt2onnx build/demo

test: asan $(ORT)/libonnxruntime.so
	@PT2ONNX_ORT=$(abspath $(ORT)) sh test/run.sh build/asan

test-ops: release $(ORT)/libonnxruntime.so
	@tools/with_torch python test/ops/suite.py build/release/pt2onnx --dtypes float32,int64,bool,float16 \
	    --cache build/ops --table docs/OPERATORS.md

test-sizes: release $(ORT)/libonnxruntime.so
	@tools/with_torch python -m pip install --quiet --disable-pip-version-check onnxscript
	@PYTHONPATH=python PT2ONNX_LIBRARY=$(abspath build/release/libpt2onnx.so) tools/with_torch python test/sizes/suite.py \
	    build/release/pt2onnx --jobs $(JOBS) --cache build/sizes --table build/sizes.md

test-single: release
	@tools/with_torch python test/single/single.py build/release/pt2onnx --jobs $(JOBS)

bench: release
	@tools/with_torch python tools/bench.py build/release/pt2onnx

bench-python: release
	@tools/with_torch python -m pip install --quiet --disable-pip-version-check onnxscript
	@PYTHONPATH=python PT2ONNX_LIBRARY=$(abspath build/release/libpt2onnx.so) tools/with_torch python tools/bench_python.py

clean:
	rm -rf build

.PHONY: all deps release asan dev demo test test-ops test-sizes test-single bench bench-python clean
