# Commands of the project. `make` alone lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

TARGET := $(or $(CARGO_TARGET_DIR),target)
PARTS := $(shell tests/setup/where)
# Once, also in a `make` below another: build scripts that read PATH run again with each new one.
export PATH := $(PARTS)/cargo-deny/bin:$(PATH:$(PARTS)/cargo-deny/bin:%=%)

# The program with the features that dependencies have in the tests, so that nothing is built a second time: cargo
# takes those of the tests' own dependencies where a test is built, too. The rules are the smallest.
BUILD_AS_TESTS := cargo build --locked --workspace --bin agent-runtime --test rules

# The report is about rouille's multipart reader, which is never reached (deny.toml).
export CARGO_FUTURE_INCOMPAT_REPORT_FREQUENCY := never

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A debug build: it is there in a third of a release build's time, and fast enough to try things.
.PHONY: run
run: ## Start everything and watch an example agent's answer stream in
	@tests/setup/postgres
	@tests/setup/console files
	cargo build --locked
	@exec $(TARGET)/debug/agent-runtime dev --demo

.PHONY: test
test: ## Run every check and test, as CI does, and print how long each part took
	@.ci/test

.PHONY: check
check: lint ## Run what takes less than three minutes: format, clippy, unit tests, the door, rules about the text
	cargo test --locked --workspace --lib --test door --test rules

.PHONY: setup
setup: ## Install what the tests need, outside the repository
	@tests/setup/all

.PHONY: lint
lint: ## Check the format, clippy's lints and the scripts' syntax
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features bench -- -D warnings
	@# `make soak` builds the fuzz targets. Their locks have to follow the others.
	@for fuzz in tests/fuzz expressions/fuzz; do \
		cargo tree --locked --quiet --depth 0 --manifest-path $$fuzz/Cargo.toml >/dev/null || exit 1; \
	done
	@for script in .ci/run .ci/test tests/setup/* tests/install/enter tests/install/lab tests/install/license tests/install/run tests/install/start.sh tests/console/check tests/console/run tests/description/check tests/fuzz/run tests/show/authz tests/show/bench tests/show/clients tests/show/console tests/show/contract tests/show/faults tests/show/first-hour tests/show/flows tests/show/guard tests/show/house tests/show/install tests/show/models tests/show/run tests/show/sign-in tests/show/start.sh tests/show/webhooks tests/soak/failover tests/soak/run tests/upgrade/earlier expressions/fuzz/run packaging/build packaging/check packaging/swagger-ui packaging/bundle/build packaging/bundle/install clients/pack clients/python/pack clients/python/tests/run clients/typescript/pack; do \
		case "$$script" in *.txt) continue ;; esac; \
		bash -n "$$script" || exit 1; \
	done
	@tests/setup/description >/dev/null
	$(PARTS)/description/node_modules/.bin/tsc --project clients/typescript
	@tests/console/check
	@tests/setup/python-client >/dev/null
	cd clients/python && $(PARTS)/python-client/bin/ruff check --no-cache . && $(PARTS)/python-client/bin/ruff format --no-cache --check --quiet .
	cd clients/python && $(PARTS)/python-client/bin/mypy --cache-dir=/dev/null && $(PARTS)/pyright/node_modules/.bin/pyright --pythonpath $(PARTS)/python-client/bin/python

.PHONY: deny
deny: ## Check licences, second versions, sources and known faults of the dependencies, browser files included
	@tests/setup/cargo-deny
	cargo deny --workspace check bans licenses sources
	@tests/setup/advisories
	@tests/setup/browser-files

.PHONY: install-test
install-test: ## Install, use, upgrade and purge the packages on a booted Debian without a network
	@tests/setup/postgres
	@tests/setup/python
	@tests/setup/node
	@tests/setup/lab
	@tests/setup/packages
	@tests/install/run

.PHONY: clients
clients: ## Write what the clients have from the API description, and pack them into target/clients
	@tests/setup/description
	@tests/setup/python-client
	clients/generate
	clients/pack $(TARGET)/clients

.PHONY: packages
packages: ## Build the packages into target/packages: deb, rpm, parts lists, offline bundle; check them
	@tests/setup/packages
	@tests/setup/openfga
	@tests/setup/description
	@tests/setup/python-client
	packaging/build

# All but the figures, which want a release build and a machine for themselves, and the contract, whose tests `make test`
# runs anyway.
SHOWS := $(filter-out tests/show/bench tests/show/house tests/show/contract,$(wildcard tests/show/*))

.PHONY: show
show: ## Run the shows: the service from outside, step by step
	@$(BUILD_AS_TESTS)
	@for script in $(SHOWS); do \
		[ -f "$$script" ] && [ -x "$$script" ] || continue; \
		echo "$$script"; \
		"$$script" || exit 1; \
	done

.PHONY: bench
bench: ## Run the benchmarks, each beside its baseline, and write docs/benchmarks.md; BENCH=NAME runs one
	@tests/setup/bench
	cargo bench --locked --features bench --bench bench -- $(BENCH)

.PHONY: upgrade-test
upgrade-test: ## Run the program before the newest migration on the newest schema; `make test` does, too
	@tests/setup/postgres
	cargo test --locked --test upgrade

.PHONY: soak
soak: ## All rounds of the hunts, then a thousand kills of the server during runs, for 90 minutes at most; then failovers of the database, a console over ends of its server, its pages for every kind of caller; and long conversations with real model servers
	@tests/setup/postgres
	tests/soak/run
	@tests/setup/python
	@tests/setup/node
	@tests/setup/openfga
	@tests/setup/patroni
	@tests/setup/console
	@tests/setup/chromium
	cargo build --locked
	AGENT_RUNTIME_ENDS=20 node --test tests/console/restart.test.mjs
	node --test tests/console/matrix.mjs
	tests/soak/failover
	AGENT_RUNTIME_TURNS=100 tests/show/models servers slot real
