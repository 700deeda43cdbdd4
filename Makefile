# Short names for what people do here; each works in a clean clone. CMake does the work, see CMakePresets.json.
PRESET ?= release
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD  := build/$(PRESET)

SOURCES = $(shell git ls-files '*.cpp' '*.h' '*.hpp')

.PHONY: build installation test demo bench-table install wheel test-python docs site format format-check lint sanitize fuzz ci \
        nightly clean deps

build: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

# Builds what `make install` and `make wheel` take, without tests and benchmarks.
installation: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target hstujit_installation --parallel $(JOBS)

# All tests, or those with one of the labels of cmake/testing.cmake: LABEL=threads. WITHOUT: a label that is left out,
# EXCLUDE: names that are.
test: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS) $(LABEL:%=--target hstujit_tests_%)
	ctest --preset $(PRESET) --parallel $(JOBS) $(LABEL:%=--label-regex %) $(WITHOUT:%=--label-exclude %) $(EXCLUDE:%=--exclude-regex '%')

# Installs and builds by itself, then shows everything that this machine can do, in a cache of its own.
demo:
	tools/demo.sh

# The README's picture and the tables of docs/results.md and docs/performance.md, from the newest files in bench/results,
# and the count of shipped records. Tests fail when one is out of step.
bench-table:
	tools/bench_table.py
	tools/row_table.py
	tools/performance_tables.py
	tools/speedup_chart.py
	tools/records_table.py

# All components, or some: COMPONENTS=runtime is what a serving machine needs (cmake/install.cmake).
ALL_COMPONENTS := runtime operations compiler host torch dev
COMPONENTS ?= $(ALL_COMPONENTS)
ifneq ($(filter-out $(ALL_COMPONENTS),$(COMPONENTS)),)
$(error COMPONENTS has $(filter-out $(ALL_COMPONENTS),$(COMPONENTS)); allowed are $(ALL_COMPONENTS))
endif
install: installation
	$(foreach component,$(COMPONENTS),cmake --install $(BUILD) --prefix $(PREFIX) --strip --component $(component) &&) true

# The wheels of Python, hstujit and hstujit-host, in build/wheel.
WHEEL := build/wheel
wheel: installation
	rm -rf $(WHEEL)
	cmake -DBUILD=$(BUILD) -DPREFIX=$(WHEEL)/prefix -P tests/python/install_prefix.cmake
	tools/wheels.py --prefix $(WHEEL)/prefix --out $(WHEEL)

# All tests of the Python package, on the wheels of this build, beside PyTorch.
test-python: build
	tools/python_tests.sh $(BUILD)

# Pages that are rendered from tables in the code.
docs: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target docs --parallel $(JOBS)

# The pages as a site, build/site (tools/site/mkdocs.yml). mkdocs-material is from PyPI, in an environment of its own.
SITE := build/site-python
site:
	test -x $(SITE)/bin/mkdocs || { python3 -m venv $(SITE) && $(SITE)/bin/pip install --quiet mkdocs-material==9.8.2; }
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet --config-file tools/site/mkdocs.yml
	@echo "build/site/index.html"

format: deps
	clang-format-19 -i $(SOURCES)

format-check: deps
	@printf '%s\n' $(SOURCES) | xargs -P $(JOBS) -n 100 clang-format-19 --dry-run --Werror

lint: deps
	cmake --preset debug
	tools/lint.sh build/debug

# What holds no MLIR, under the address and undefined-behaviour sanitizers; what has threads, under the thread
# sanitizer.
sanitize:
	$(MAKE) test PRESET=asan
	$(MAKE) test PRESET=tsan LABEL=threads

# Every parser of bytes that others may have written, SECONDS_EACH seconds each, one a core at a time; with 0 the seeds
# alone.
fuzz: PRESET = asan
fuzz: deps
	cmake --preset asan
	cmake --build --preset asan --target hstujit_fuzzers --parallel $(JOBS)
	tools/fuzz.sh build/asan $(TARGETS)

# Continuous integration, which every change passes, and what takes too long for that (CONTRIBUTING.md).
ci:
	.ci/run
nightly:
	.ci/run nightly

clean:
	rm -rf build

deps:
	@tools/install-deps.sh --if-missing $(if $(filter asan tsan,$(PRESET)),--sanitizers)
