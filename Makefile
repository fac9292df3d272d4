# `make help` lists what there is. Every target does the set-up that it needs; stamps in .venv keep a second run short.
PYTHON ?= python3
DATA ?= data
VENV := .venv
PY := $(VENV)/bin/python
WHEEL_PYTHON ?= $(PY)
PIP := $(PY) -m pip --disable-pip-version-check --quiet
CONSTRAINTS := requirements/constraints.txt
COMPILED_SOURCES := $(shell find core gateway lmq spark_analytics -name '*.pxd' -o -name '*.h' 2>/dev/null) setup.py all_or_nothing.py levels.py
COMPILED_SOURCES += $(wildcard $(patsubst %.pxd,%.py,$(filter %.pxd,$(COMPILED_SOURCES))))
PURE := build/pure
MAKEFLAGS += --jobs=2 # pip gets what the gateway needs while the modules are compiled
COPY_SOURCES = git ls-files -co --exclude-standard | while read -r file; do [ -f "$$file" ] && echo "$$file"; done \
		| tar -cf - -T - | tar -xf - -C

.PHONY: help run test test-pure check torture fuzz conformance clients clients-amqp clients-rocketmq demo bench bench-peers bench-scale bench-watched wheels test-wheel clean lock setup setup-test setup-check browser schemathesis

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## start the gateway on its usual ports, data in ./data
	@echo
	@echo "Try it from another terminal, in this folder:"
	@echo "  $(VENV)/bin/lmq subscribe 'plant/#' &"
	@echo "  $(VENV)/bin/lmq publish plant/1/temp 21.5"
	@echo "  $(VENV)/bin/lmq explain topic plant/1/temp"
	@echo "  curl -s http://127.0.0.1:15672/metrics | grep lmq_messages"
	@echo "More: README.md, \"Five minutes\". Ctrl-C stops it."
	@echo
	@exec $(VENV)/bin/lmq serve --data-dir $(DATA)

test: setup-test ## run all tests, compiled
	@$(PY) -m pytest -q $(ARGS)

test-pure: setup-test ## run the tests that a build could change on a copy of the sources without compiled modules
	@rm -rf $(PURE) && mkdir -p $(PURE)
	@$(COPY_SOURCES) $(PURE)
	@cd $(PURE) && LMQ_COMPILE=none PYTHONDONTWRITEBYTECODE= ../../$(PY) -m pytest -q $(ARGS)

check: setup-check ## format, lint, types, layers, spelling, and the rules about the source
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint core gateway lmq spark_analytics
	@$(VENV)/bin/deptry .
	@$(VENV)/bin/codespell
	@$(PY) -m pytest -q tests/tidy

torture: setup-test ## histories of a store, of shared queues, of virtual hosts, of topics and of sessions, with kills and power cuts, beside CI: hours if you like (ROUNDS= FIRST=)
	@TORTURE_ROUNDS=$(or $(ROUNDS),1000) TORTURE_QUEUE_HISTORIES=$(or $(ROUNDS),1000) TORTURE_LIVES=$(or $(ROUNDS),1000) TORTURE_SESSION_LIVES=$(or $(ROUNDS),1000) TORTURE_EXACT_LIVES=$(or $(ROUNDS),1000) TORTURE_LINEAGE_LIVES=$(or $(ROUNDS),1000) TORTURE_HOST_LIVES=$(or $(ROUNDS),1000) TORTURE_FATE_LIVES=$(or $(ROUNDS),1000) TORTURE_ROCKETMQ_LIVES=$(or $(ROUNDS),1000) TORTURE_POP_HISTORIES=$$((100 * $(or $(ROUNDS),1000))) TORTURE_FIRST=$(or $(FIRST),$(shell date +%s)) \
		$(PY) -m pytest -q --timeout 0 tests/model/test_pop.py tests/model/test_amqp_queue.py tests/model/test_amqp_lives.py tests/model/test_amqp_hosts.py tests/model/test_amqp_fates.py tests/model/test_rocketmq_lives.py tests/model/test_exact_lives.py tests/model/test_exact_retained.py tests/model/test_session_lives.py tests/model/test_lineage_lives.py tests/model/test_group_lives.py tests/model/test_power_cut.py $(ARGS)

fuzz: setup-test ## any bytes at the decoders of MQTT, AMQP and RocketMQ, and bad clients at a whole AMQP door, beside CI; by atheris where it is installed (CASES= SEED= DOOR=one of them)
	@for door in $(or $(DOOR),mqtt amqp amqp_door rocketmq); do \
		$(PY) -m tests.fault.fuzz_$$door $(if $(CASES),--cases $(CASES)) --seed $(or $(SEED),$(shell date +%s)) || exit 1; done

conformance: setup-test ## the clauses of MQTT over TCP, WebSocket and TLS, beside CI, which holds to some of them over the last two
	@for transport in tcp ws tls; do $(PY) -m pytest -q tests/conformance/mqtt --transport=$$transport $(ARGS) || exit 1; done

clients: setup-test ## MQTT clients in JavaScript, Go and Java, with connections that break, beside CI; what is not there is skipped
	@LMQ_TEST_CLIENTS=1 $(PY) -m pytest -q -s -m clients tests/integration/test_mqtt_clients_elsewhere.py $(ARGS)

clients-amqp: setup-test ## RabbitMQ's clients in JavaScript, Java and Go, clients' own suites, and workers of task frameworks with kills, counted, and Flower, beside CI
	@LMQ_TEST_CLIENTS=1 $(PY) -m pytest -q -s -m clients tests/integration/test_amqp_clients_elsewhere.py tests/integration/test_amqp_workers_elsewhere.py tests/integration/test_flower_elsewhere.py $(ARGS)

clients-rocketmq: setup-test ## RocketMQ's Java (4.9 and 5), Go and Node.js clients, each scenario counted; CI runs the Java ones; what is not there is skipped
	@LMQ_TEST_CLIENTS=1 $(PY) -m pytest -q -s -m clients tests/integration/test_rocketmq_clients_elsewhere.py $(ARGS)

browser: setup-test ## the console in Chromium, every page, beside CI; skipped where there is no chromium or npm
	@LMQ_TEST_CLIENTS=1 $(PY) -m pytest -q -s -m clients tests/integration/test_console_in_a_browser.py $(ARGS)

schemathesis: setup-test ## the admin API asked by schemathesis (into build/) what its description allows, beside CI
	@LMQ_TEST_CLIENTS=1 $(PY) -m pytest -q -s -m clients tests/integration/test_api_by_its_description.py $(ARGS)

demo: setup-test ## 200 devices, AMQP and SDK consumers for 30 s, counted end to end, then the Spark report
	@$(PY) -m gateway.demo $(ARGS)

bench: setup-test ## the gateway beside each peer that is found: tables, JSON and a plot in bench/out (SCENARIO= PEERS= SECS= ROUNDS= BYTES=)
	@$(PY) -m tests.benchmarks.scenarios.bench --scenario '$(SCENARIO)' --peers '$(PEERS)' --secs '$(SECS)' --rounds '$(ROUNDS)' --bytes '$(BYTES)'

bench-watched: setup-test ## what two loads lose beside 100,000 queues and 10,000 connections, and while a console asks about them (QUEUES= CONNECTIONS= SECS= ROUNDS=)
	@$(PY) -m tests.benchmarks.scenarios.watched --queues '$(QUEUES)' --connections '$(CONNECTIONS)' --secs '$(SECS)' --rounds '$(ROUNDS)'

bench-peers: setup-test ## get the peers to measure beside, each by its own tool, into build/peers
	@$(PY) -m tests.benchmarks.scenarios.fetch_peers

bench-scale: setup-test ## what things cost as they grow, each beside its bound: tables, JSON and plots in bench/out/scale (SCENARIO= SIZES= ROUNDS=)
	@$(PY) -m tests.benchmarks.scale.bench --scenario '$(SCENARIO)' --sizes '$(SIZES)' --rounds '$(ROUNDS)'

wheels: setup-check ## source archive, and a manylinux wheel for each of Python 3.11 to 3.14 that is found, in dist/ (PYTHONS=)
	@$(PY) wheels/make.py dist $(PYTHONS)

test-wheel: setup-check ## a wheel, installed where nothing else is: one message through each door, kept over a restart (WHEEL_PYTHON=)
	@rm -rf build/wheel
	@CFLAGS=-O0 $(PY) wheels/make.py build/wheel $(WHEEL_PYTHON) # what is in it is tested here, not how fast it is
	@LMQ_WHEEL=$$(echo build/wheel/*.whl) LMQ_WHEEL_PYTHON=$(WHEEL_PYTHON) $(PY) -m pytest -q tests/integration/test_wheel.py

clean: ## remove what was built; .venv and data stay
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find core gateway lmq spark_analytics \( -name '*.so' -o -name '*.c' \) -delete
	@rm -f $(VENV)/.compiled

lock: ## write requirements/constraints.txt anew, from the newest versions that pyproject.toml allows
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip --quiet install --upgrade 'setuptools>=77' 'cython>=3.3,<3.4' wheel
	@LMQ_COMPILE=none build/lock/bin/python -m pip --quiet install --no-build-isolation -e '.[test,spark,check]'
	@{ echo "# What the set-up installs, exactly. Made by: make lock"; \
		build/lock/bin/python -m pip freeze --all --exclude-editable | grep -v '^pip=='; } > $(CONSTRAINTS)

# Set-up

setup: $(VENV)/.base $(VENV)/.compiled
setup-test: setup $(VENV)/.test
setup-check: setup-test $(VENV)/.check

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.platform != "linux")' || { echo "lmq-gateway runs on Linux"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "lmq-gateway needs Python 3.11 or later; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.tools: $(PY) pyproject.toml $(CONSTRAINTS)
	@$(PIP) install -c $(CONSTRAINTS) 'setuptools>=77' 'cython>=3.3,<3.4' wheel
	@touch $@

$(VENV)/.base: $(VENV)/.tools
	@LMQ_COMPILE=none $(PIP) install -c $(CONSTRAINTS) --no-build-isolation -e '.[clients]'
	@touch $@

$(VENV)/.compiled: $(VENV)/.tools $(COMPILED_SOURCES)
	@echo "compiling the data path"
	@$(PY) setup.py --quiet build_ext --inplace
	@touch $@

$(VENV)/.test: $(VENV)/.base
	@echo "adding what the tests need, and Spark"
	@LMQ_COMPILE=none $(PIP) install -c $(CONSTRAINTS) --no-build-isolation -e '.[test,spark]'
	@touch $@

$(VENV)/.check: $(VENV)/.test
	@LMQ_COMPILE=none $(PIP) install -c $(CONSTRAINTS) --no-build-isolation -e '.[test,spark,check]'
	@touch $@
