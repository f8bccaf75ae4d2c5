# fairlift: `make demo` shows it, `make test` proves it. `make help` lists the rest.
.POSIX:
SHELL = /bin/sh
CARGO ?= cargo
FAIRLIFT = target/release/fairlift

.PHONY: help demo test check lint doc build bench instructions mutants fuzz reproduce which study book page-test python-test package kernel kernel-test kernel-install kernel-package kernel-bench vm

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 16

demo: build ## compare seven schedulers on a database beside a backup, and say which to take
	$(FAIRLIFT) compare experiments/demo.toml --goal p99:database

build: ## the release binary, target/release/fairlift
	@scripts/need cargo cc
	$(CARGO) build --release --locked --quiet

test: lint doc ## everything CI runs: format, lints, docs, all tests, experiments, the module where it can be built
	$(CARGO) test --workspace --locked
	$(CARGO) build --release --locked
	$(FAIRLIFT) reproduce
	$(FAIRLIFT) which --check docs/which-scheduler.md
	scripts/page-test
	FAIRLIFT=$(FAIRLIFT) scripts/package
	scripts/python-test --short
	kernel/test/short

lint:
	@scripts/need cargo cc
	for lock in crates/python fuzz; do $(CARGO) metadata --locked --format-version 1 --manifest-path $$lock/Cargo.toml >/dev/null || exit; done
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

reproduce: build ## published figures beside ours, written to docs/experiments.md
	$(FAIRLIFT) reproduce --output docs/experiments.md

book: ## the documentation as a book, target/book/index.html (builds mdBook once)
	@scripts/need cargo cc
	scripts/book

which: build ## six loads on four devices under seven schedulers, written to docs/which-scheduler.md
	$(FAIRLIFT) which --output docs/which-scheduler.md

page-test: build ## the report of the demo in a headless browser (needs node and Chromium)
	scripts/page-test

python-test: ## the Python package: build its wheel, test it in a clean environment with Dask and Ray (needs python3, downloads from PyPI)
	scripts/python-test

package: ## the Debian package of the command, a static binary (needs musl-tools) and a container image of it (docker or buildah), in target/package
	scripts/package
	scripts/package --container

study: build ## which scheduler and settings, for which load, on which device: docs/study.md
	scripts/study

bench: ## time per request of core and simulator, then instructions per request
	$(CARGO) bench --workspace --locked
	@$(MAKE) instructions

instructions: ## instructions per request, counted by callgrind
	@scripts/need cargo cc valgrind
	scripts/instructions

mutants: ## list the planted bugs and show that the tests catch each
	@scripts/need cargo cc
	scripts/mutants list
	scripts/mutants run

fuzz: ## fuzz the parsers and the core for a minute each (needs a nightly toolchain and cargo-fuzz)
	scripts/fuzz

kernel: ## the elevator module for the running kernel or KERNEL=RELEASE (docs/kernel.md)
	@scripts/need cargo cc
	@kernel/build

kernel-test: kernel ## load, switch, break and verify the module in virtual machines, the long form
	kernel/test/run --full

kernel-install: ## install the module with DKMS, for this kernel and those to come (as root)
	kernel/install

kernel-package: kernel ## the Debian package of the module, fairlift-dkms
	kernel/package/build

kernel-bench: kernel ## the module beside none, mq-deadline, kyber and bfq, in virtual machines
	kernel/bench/run

vm: kernel ## a shell in a virtual machine with the module in /host
	kernel/vm/run
