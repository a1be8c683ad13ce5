# Standfast. `make demo` shows it, `make test` proves it; `make help` lists the rest.

CARGO ?= cargo
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 2
SEEDS ?= 650
LANGUAGE ?= c

.DEFAULT_GOAL := help
.PHONY: help demo test format lint unit doc fuzz audit bench bars campaign figures simulate release-check install clean beside-tests
.PHONY: deps-build deps-bars deps-demo deps-test deps-audit deps-release

# Libraries that tests load are targets too: building one of them later, by itself, takes other features
# of its dependencies, and so all of them again.
all-built = $(CARGO) build --locked --workspace --all-targets -q
# Tests start compilers: those are not part of this make, and would complain of its jobs.
alone = env -u MAKEFLAGS -u MFLAGS
# The lab is a workspace of its own, with its own lock file and the same target directory.
in-lab = cd lab && $(CARGO)
deny = $${CARGO_TARGET_DIR:-target}/deny/bin/cargo-deny -L error --offline --locked --config deny.toml

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: deps-demo ## An MPI job loses nodes, restarts, and ends with the same bits (LANGUAGE=fortran, rust)
	$(CARGO) build --locked --release -q -p standfast-cli -p standfast-c $(if $(filter rust,$(LANGUAGE)),-p example-heat)
	$(in-lab) run --locked --release -q -p lab-demo -- --language $(LANGUAGE)

# Tests wait for processes and disks much of their time. Whatever else there is to do fills it, behind
# them: nice, for some tests tell who is alive by how soon it answers.
# What is installed by then must be found: a test that is left out for want of it fails.
test: export STANDFAST_MUST ?= c++,fortran,mount,mpi,powerloss,s3
test: deps-test format ## Everything that CI runs
	$(all-built)
	$(in-lab) build --locked --workspace --all-targets -q
	@$(MAKE) --no-print-directory -j2 unit beside-tests
	@echo "make test: all passed"

beside-tests:
	@nice $(MAKE) --no-print-directory lint
	@nice $(MAKE) --no-print-directory doc
	@nice $(MAKE) --no-print-directory fuzz
	@nice $(MAKE) --no-print-directory audit

format:
	$(CARGO) fmt --all --check
	$(in-lab) fmt --all --check

lint: format
	$(CARGO) clippy --locked --workspace --all-targets -q -- -D warnings
	$(in-lab) clippy --locked --workspace --all-targets -q -- -D warnings

unit: ## Unit, property, conformance, command, crash, C and lab tests
	$(all-built)
	$(alone) $(CARGO) test --locked --workspace -q
	cd lab && $(alone) $(CARGO) test --locked --workspace -q

doc: ## The Rust reference, with broken links as errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps -q

fuzz: deps-test ## Every decoder, FUZZ_SECONDS each
	fuzz/run.sh $(FUZZ_SECONDS)

audit: deps-audit ## Licences, sources and duplicates of dependencies, by cargo-deny; offline
	@set -e; for workspace in . lab; do \
	    $(deny) --manifest-path $$workspace/Cargo.toml check licenses bans sources; \
	done

bench: deps-build ## This machine's ceilings and what each stage reaches of them
	$(CARGO) run --locked --release -q -p standfast-cli -- bench

# ISA-L is what the ring's kernels are held against, where it can be linked.
bars: deps-bars ## Every promised figure: value, goal, ceiling (ONLY=A,B QUICK=1 JSON=1); exit 1: missed, 3: not measured
	@$(CARGO) build --locked --release -q -p standfast-simulate
	@features=$$(scripts/deps.sh features) && $(in-lab) build --locked --release -q -p experiments $$features
	@$${CARGO_TARGET_DIR:-target}/release/experiments bars $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(if $(JSON),--json)

figures: ## The tables of figures in README and docs, from benches/results
	$(in-lab) run --locked -q -p experiments -- figures --root ..

simulate: deps-build ## Protocols under simulated crashes and failures (RUNS=20000 SEED=0 SCENARIO=job JSON=1; RUNS=1 shows the trace)
	@$(CARGO) build --locked --release -q -p standfast-simulate
	@RUNS=$(RUNS) SEED=$(SEED) SCENARIO=$(SCENARIO) JSON=$(JSON) $${CARGO_TARGET_DIR:-target}/release/standfast-simulate

campaign: deps-bars ## Jobs of several nodes under some 5000 random faults (SEEDS=650 SEED=1)
	@$(in-lab) build --locked --release -q -p experiments
	@$${CARGO_TARGET_DIR:-target}/release/experiments campaign --seeds $(SEEDS) --seed $(or $(SEED),1)

release-check: deps-release ## What crates.io would get: every package built as published, and no change of the Rust API unseen
	$(CARGO) publish --locked --workspace --dry-run
	@scripts/api.sh | diff -u crates/standfast/api.txt - || { \
	    echo "the Rust API has changed: see docs/STABILITY.md, then scripts/api.sh >crates/standfast/api.txt"; exit 1; }

install: deps-build ## Libraries, header, pkg-config file and command below PREFIX
	$(CARGO) build --locked --release -q -p standfast-cli -p standfast-c -p standfast-preload
	bindings/c/install.sh $(PREFIX)
	install -D -m 755 target/release/standfast $(PREFIX)/bin/standfast
	install -D -m 755 target/release/libstandfast_preload.so $(PREFIX)/lib/libstandfast_preload.so
	install -d $(PREFIX)/share/man/man1
	./target/release/standfast man --dir $(PREFIX)/share/man/man1

clean: ## Everything that was built
	$(CARGO) clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts

deps-build:
	@scripts/deps.sh build

deps-bars:
	@scripts/deps.sh bars

deps-demo:
	@scripts/deps.sh demo $(LANGUAGE)

deps-test:
	@scripts/deps.sh test

deps-audit:
	@scripts/deps.sh audit

deps-release:
	@scripts/deps.sh release
