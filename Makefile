# Every target makes its own environment in .venv; a stamp per set of extras keeps the second run fast.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Tests that call kernels of the other families on small data.
KERNELS := $(addprefix tests/,core/test_numeric.py decision/test_risk.py optimize/test_rules.py hmm/test_worked.py \
	$(addprefix linear_model/test_,logistic_loss.py margin_losses.py) mixture/test_binomial_mixture.py core/test_xoshiro.py \
	$(addprefix graphical/test_,elimination.py junction_tree.py gibbs_program.py) svm/test_pairs.py kernels/test_validity.py \
	$(addprefix neural_network/test_,layers.py training.py) $(addprefix rl/test_,environment.py policy_gradient.py) $(addprefix association/test_,apriori.py stored.py))

.PHONY: demo test lint types contracts pytest pages nojit bench docs clean

demo: $(VENV)/.demo
	$(BIN)/lemmata demo --out demo

test: lint types contracts pytest pages nojit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

pytest: $(VENV)/.dev
	$(BIN)/pytest -n 2

# Every example and every command of the documentation's pages, run and compared, with the kernels that the tests compiled.
pages: $(VENV)/.dev
	NUMBA_CACHE_DIR=$$(PYTHONPATH=tests $(BIN)/python -c "import helpers; print(helpers.kernel_cache())") \
	$(BIN)/python docs/check_pages.py

# The families with kernels again, as plain Python: what a debugger or a coverage tool sees must give the same answers.
nojit: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 -q tests/cluster tests/tree tests/naive_bayes $(KERNELS) -m "not slow_without_jit"

bench: $(VENV)/.bench
	$(BIN)/python -m bench

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.dev $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) demo docs/_build docs/auto_examples docs/api/generated
