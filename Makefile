# Everything the project needs is installed from here. `make test` needs Python 3.11+ and PyPI, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JARS := .jars/kafka

# A test that nothing can interrupt ends its process, with the stacks of its threads.
UNENDING := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

.DEFAULT_GOAL := help
.PHONY: help demo install compiled check test compat compat-long jars spark-jars kcat links bench bench-cluster bench-removals bench-partitions bench-groups bench-spark proof proof-losses proof-failover proof-rolling \
	proof-calm proof-start proof-wiped proof-pipeline proof-fixtures sim chaos crash fuzz clean

help:
	@echo "make demo              two minutes: six brokers, Spark, one killed in the middle, and the reckoning"
	@echo "make test              lint, types and tests (Python and PyPI only)"
	@echo "make compat            tests against kcat and Apache Kafka's own tools (Debian, Maven Central, Java 17)"
	@echo "make compat-long       whole pipelines: on Apache Kafka too, on Spark's masters, killed and run again (Maven, Java 17)"
	@echo "make check             ruff, mypy, the shape of the tree"
	@echo "make bench             Klamm beside Apache Kafka, five alternating rounds, into bench/results/"
	@echo "make bench-cluster     three brokers beside three of Apache Kafka, replicated, five alternating rounds"
	@echo "make bench-removals    latency of three brokers while 10 GiB are deleted, and while retention takes segments"
	@echo "make bench-groups      one group of 10 to 500 members and a thousand groups, beside Apache Kafka"
	@echo "make bench-spark       format klamm beside Spark's own connector: records a second of streaming queries"
	@echo "make bench-partitions  10 to 10,000 partitions: creation, restart, memory, cost of a produce"
	@echo "make proof             a cluster under failures: losses, failover, rolling restarts, calm, start, lost disks (an hour)"
	@echo "make proof-pipeline    a million invoices into tables, and ten runs under kill -9 of everything (hours)"
	@echo "make proof-fixtures    the sample project's tests on the pytest fixtures, RUNS=50 times under xdist, no flake"
	@echo "make sim SEEDS=1000    whole clusters in a simulator, FIRST=0 the first seed, every promise checked"
	@echo "make chaos RUNS=30     real processes under faults, FIRST=0 the first seed, a minute each, into proof/results/"
	@echo "make crash             kill -9 a broker a hundred times under load"
	@echo "make fuzz              the longest step of any frame, and a million mutated requests"
	@echo "make docs              the tables and pictures of the documentation, made again from the code and a live cluster"
	@echo "make install           the virtual environment with everything in it"

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Installing into $(VENV) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# As pip does for a package that is installed for good: a broker must not compile its source at every start.
compiled: install
	@$(BIN)/python -m compileall -q src

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_tidy.py

test: check compiled
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not compat and not crash and not long" --durations=10 $(UNENDING)

compat: install compiled jars spark-jars kcat links
	$(BIN)/python -m pytest -m "compat and not long" --durations=5 $(UNENDING)

# Whole pipelines: on Apache Kafka as well, on Spark's own masters, killed and run again.
compat-long: install compiled jars spark-jars
	$(BIN)/python -m pytest -m long --durations=5

jars: $(JARS)/.fetched

$(JARS)/.fetched: tools/kafka/pom.xml tools/kafka/fetch.sh
	@echo "Fetching Apache Kafka's jars …"
	@bash tools/kafka/fetch.sh $(JARS)
	@touch $@

spark-jars: .jars/spark/.fetched

.jars/spark/.fetched: tools/spark/pom.xml tools/spark/fetch.sh
	@echo "Fetching Spark's Kafka connector …"
	@bash tools/spark/fetch.sh
	@touch $@

kcat:
	@command -v kcat >/dev/null || (echo "Installing kcat …" && apt-get -qq update && apt-get -qq install -y kcat >/dev/null)

links:
	@command -v ip >/dev/null && command -v nft >/dev/null && command -v tc >/dev/null || \
		(echo "Installing iproute2 and nftables …" && apt-get -qq update && apt-get -qq install -y iproute2 nftables >/dev/null)

demo: install compiled
	$(BIN)/klamm demo

bench: install compiled jars
	$(BIN)/python -m bench run --rounds 5

bench-cluster: install compiled jars
	$(BIN)/python -m bench cluster --rounds 5

bench-removals: install compiled
	$(BIN)/python -m bench removals --resume

bench-partitions: install compiled
	$(BIN)/python -m bench partitions

bench-groups: install compiled jars
	$(BIN)/python -m bench groups --rounds 5

bench-spark: install compiled jars spark-jars
	$(BIN)/python -m bench spark --rounds 3

proof: proof-losses proof-failover proof-rolling proof-calm proof-start proof-wiped

proof-losses proof-rolling proof-calm proof-start proof-wiped: install compiled
	$(BIN)/python -m proof $(@:proof-%=%)

proof-failover: install compiled jars
	$(BIN)/python -m proof failover

# A million invoices into tables, then ten runs while brokers, racks, drivers and executors are killed: some hours.
proof-pipeline: install compiled
	$(BIN)/python -m proof pipeline

# Resumable: a line of results a run.
proof-fixtures: install compiled
	$(BIN)/python -m proof fixtures --runs $(or $(RUNS),50)

sim: install compiled
	$(BIN)/klamm sim --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),0) --jobs 2 --results proof/results/sim.jsonl

# A line of results a run: one that was interrupted goes on with FIRST=.
chaos: install compiled links
	$(BIN)/klamm chaos --seed $(or $(FIRST),0) --runs $(or $(RUNS),30) --seconds $(or $(SECONDS),60) --results proof/results/chaos.jsonl

crash: install compiled
	$(BIN)/python -m pytest tests/crash -m crash -q

fuzz: install compiled
	$(BIN)/python -m tests.fuzz.clocked
	$(BIN)/python -m tests.fuzz

# What is made from the code, and from live clusters.
.PHONY: docs
docs: install compiled
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.docs.pictures
	$(BIN)/python -m tools.docs.terminal

clean:
	rm -rf $(VENV) .jars .mypy_cache .ruff_cache .pytest_cache build dist src/*.egg-info
