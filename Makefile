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
