# Run `make` or `make help` for what there is to do.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The landscape that `up`, `down` and `status` work on; several can live side by side.
NAME ?= local

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; printf "Usage: make TARGET [NAME=landscape]\n"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Development

.PHONY: check
check: ## Check format, lint, generated code, go.mod files and stray files (STEPS="gofumpt tidy" for some).
	@go run ./hack/check $(STEPS)

.PHONY: format
format: ## Format all Go files.
	@git ls-files -z --cached --others --exclude-standard '*.go' ':!*/zz_generated*' ':!*.pb.go' | \
		xargs -0 -r ls -d 2>/dev/null | xargs -r go tool -modfile=hack/tools/go.mod gofumpt -w

.PHONY: generate
generate: ## Generate the code that is derived from other code.
	@hack/generate.sh

.PHONY: test
test: ## Run the tests that need no preparation (TESTFLAGS="-race -run Find" is handed to go test).
	@hack/test.sh $(TESTFLAGS)
