# Short commands; CMakeLists.txt does the work.
#
#	make crashtest ARGS="erda --jobs 2"
#
# ARGS: passed to tidemark. CC: the compiler of `make`, `make crashtest` (default gcc). TARGET: what `make` builds.
# PREFIX, DESTDIR: where `make install` puts what it installs, and a folder that this is below for now.

ARGS ?=
PREFIX ?= /usr/local
TARGET = tidemark
ifeq ($(origin CC),default)
CC = gcc
endif

all: build

help:
	@echo 'make             build build/tidemark'
	@echo 'make crashtest   explore the stores; say which guarantee holds and which breaks (ARGS="--budget whole": with more runs)'
	@echo 'make crashtest-all  the same with every store'
	@echo 'make claims      what the papers claim, and what they leave out: is it so?'
	@echo 'make taxonomy    which way of making a remote update durable is sound on which hardware?'
	@echo 'make pictures    draw verdicts and methods of the taxonomy into build/pictures'
	@echo 'make litmus      run the litmus tests: all outcomes, and which conditions hold'
	@echo 'make mutants     look for the seeded bugs: are all found, and how soon?'
	@echo 'make ablate      which flushes, fences, waits and checks does a store need? (ARGS=STORE)'
	@echo 'make soak        random hardware and workloads, for half an hour (ARGS="--time 60s")'
	@echo 'make fuzz        rerun known traces, then drive the stores with inputs that reach new states'
	@echo 'make list        stores, variants, knobs, contracts, seeded bugs'
	@echo 'make test        the quick tests, in minutes'
	@echo 'make test-sanitized  those that are not long once more, with ASan and UBSan'
	@echo 'make test-all    all tests: sanitizers, guests, programs of others, races, and the long ones whole'
	@echo 'make format      lay out the sources as .clang-format says'
	@echo 'make bench       measure the simulator'
	@echo 'make imagebench  a crash state here, beside an image and a process for each as with pmreorder'
	@echo 'make recordbench what tidemark record costs: programs without and with it'
	@echo 'make nicbench    measure the soft RNIC on this machine'
	@echo 'make vm          make a guest for the live world: a kernel package, and programs of this machine'
	@echo 'make vmtest      cut the power of a server on kernel Soft-RoCE and an NVDIMM, again and again'
	@echo 'make vmsoak      kill -9 of clients and servers there, for ten minutes a store'
	@echo 'make vmdiff      small verbs programs on the soft RNIC and on rdma_rxe: where do the two differ?'
	@echo 'make interop     programs of others, unmodified, on the soft RNIC'
	@echo 'make install     to $$PREFIX (/usr/local): the program, headers, manual pages, completion'
	@echo 'make uninstall   remove what was installed there'
	@echo 'make deb         a Debian package, build/tidemark_*.deb'
	@echo 'make clean       remove build*/'
	@echo 'crashtest, claims, taxonomy, litmus, mutants, ablate, soak, fuzz, list and bench pass ARGS="..." on to tidemark.'
	@echo 'If tidemark ends with status N, make prints "Error N" and ends with 2: 1 a promise is broken, 2 bad input (docs/cli.md).'

deps:
	@scripts/deps

build: deps
	@TARGET="$(TARGET)" scripts/build build -DCMAKE_C_COMPILER=$(CC) -DTIDEMARK_WERROR=OFF -DTIDEMARK_SANITIZE=OFF

crashtest claims taxonomy mutants ablate soak bench list: build
	@build/tidemark $@ $(ARGS)

crashtest-all: build
	@build/tidemark crashtest --all $(ARGS)

pictures: build
	@build/tidemark taxonomy --workload w.40 --no-traces --json build/taxonomy.json
	@scripts/pictures build/taxonomy.json build/pictures

litmus: build
	@build/tidemark litmus scenarios/litmus $(ARGS)

# As in continuous integration: a fixed budget, a corpus that is kept.
fuzz: build
	@mkdir -p build/corpus
	@build/tidemark fuzz --time 20s --corpus build/corpus $(ARGS)

test: deps
	@scripts/test quick

test-sanitized: deps
	@scripts/test sanitized

test-all: deps
	@scripts/test all

format:
	@scripts/format

vm: deps
	@scripts/deps vm
	@vm/build

vmtest: build vm
	@vm/powercut $(ARGS)
	@vm/tear
	@vm/flush

imagebench: deps
	@$(MAKE) --no-print-directory build TARGET=bench_images
	@build/bench_images $(ARGS)

recordbench: deps
	@$(MAKE) --no-print-directory build
	@scripts/recordbench $(ARGS)

nicbench: deps
	@$(MAKE) --no-print-directory build TARGET='tidemark bench_nic'
	@build/tidemark run -- build/bench_nic

vmsoak: build vm
	@vm/soak $(ARGS)

vmdiff: build vm
	@vm/differential $(ARGS)

interop: deps
	@scripts/deps interop
	@$(MAKE) --no-print-directory build TARGET='tidemark nic_death'
	@scripts/interop $(ARGS)

install:
	@$(MAKE) --no-print-directory build TARGET='tidemark manuals'
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)" >build/install.log || { cat build/install.log; exit 1; }
	@echo "tidemark is installed: $(DESTDIR)$(PREFIX)/bin/tidemark"

uninstall:
	@DESTDIR="$(DESTDIR)" scripts/uninstall build "$(PREFIX)"

deb:
	@scripts/deps deb
	@$(MAKE) --no-print-directory build TARGET='tidemark manuals'
	@scripts/deb build

clean:
	rm -rf build build-gcc build-clang build-tsan build-afl

.PHONY: all help deps build crashtest crashtest-all claims taxonomy pictures litmus mutants ablate soak fuzz bench list test
.PHONY: test-sanitized test-all format install uninstall deb clean imagebench recordbench nicbench vm vmtest vmsoak vmdiff interop
