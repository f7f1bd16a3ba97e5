# Run `make` or `make help` for the list of targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The version that Gardener's processes report: that of the API that they serve.
VERSION := $(shell cat VERSION)
# -buildvcs=false, as Go otherwise runs git, which fails in a clone that belongs to another user than root.
BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(VERSION)" -o bin/

# Services and agents of CI may have no home, where Go and the distribution keep their caches.
export HOME ?= $(shell getent passwd "$$(id -u)" | cut -d: -f6)

# The landscape of `up`, `down` and `status`; several can run side by side.
NAME ?= local

# Targets depend on others in the order in which those must run, also with -j. Slow targets use all cores by themselves.
.NOTPARALLEL:

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; printf "Usage: make TARGET [NAME=landscape]\n"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Landscape

.PHONY: up
up: deps preflight tools distribution ## Bring up a local landscape; again: change what differs.
	@bin/landscape up --name $(NAME) $(UPFLAGS)

.PHONY: preflight
preflight: deps ## Check whether this computer can run the landscape, before most is built.
	@test -e bin/landscape || echo "Compiling the landscape tool to check this computer: a minute or two the first time"
	@$(BUILD) ./cmd/landscape
	@bin/landscape up --check --name $(NAME) $(UPFLAGS)

.PHONY: down
down: bin/landscape ## Remove the landscape and all its data.
	@bin/landscape down --name $(NAME) --yes

.PHONY: status
status: bin/landscape ## Show clusters, machines and memory of the landscape.
	@bin/landscape status --name $(NAME)

.PHONY: distribution
distribution: tools ## Build Kubernetes, containerd, the machine image and all other products that are missing in the cache.
	@bin/distribution build

##@ Development

.PHONY: build
build: ## Build all commands into bin/.
	@$(BUILD) ./cmd/...

.PHONY: build-amd64
build-amd64: ## Build the binary with all server components for amd64, into bin/amd64.
	@GOOS=linux GOARCH=amd64 $(BUILD)amd64/ ./cmd/gardener

.PHONY: build-arm64
build-arm64: ## Build the binary with all server components for arm64, into bin/arm64.
	@GOOS=linux GOARCH=arm64 $(BUILD)arm64/ ./cmd/gardener

.PHONY: arm64
arm64: deps tools build-arm64 ## Build all products for arm64 that this machine can, and start the programs of all images, emulated by QEMU.
	@hack/deps.sh qemu-user
	@bin/distribution build --all --arch arm64
	@go test -count=1 -timeout 30m -v ./test/emulation -all

.PHONY: tools
tools: ## Build the command line tools, and the binary with all server components, into bin/.
	@test -e bin/gardener || echo "Compiling Gardener: some minutes the first time"
	@$(BUILD) ./cmd/distribution ./cmd/landscape ./cmd/gardener ./cmd/gardenctl

bin/landscape:
	@$(MAKE) --no-print-directory tools

.PHONY: deps
deps: ## Check for Go, and install the Debian packages that building needs, if root.
	@hack/deps.sh

.PHONY: e2e-preflight
e2e-preflight: deps ## Take down landscapes of killed end-to-end tests, and check whether this computer can run another landscape.
	@hack/e2e-orphans.sh
	@$(MAKE) --no-print-directory preflight NAME=e2e UPFLAGS="--seeds 2"

.PHONY: test-e2e
test-e2e: e2e-preflight tools distribution ## Bring up a landscape of its own, use it as a user would, and take it down.
	@CGO_ENABLED=0 GOFLAGS=-trimpath go test -tags e2e -count=1 -timeout 70m -v $(TESTFLAGS) ./test/e2e

.PHONY: check
check: ## Check format, lint, generated code, go.mod files and stray files (STEPS="gofumpt tidy" for some).
	@go run ./hack/check $(STEPS)

.PHONY: format
format: ## Format all Go files.
	@git ls-files -z --cached --others --exclude-standard '*.go' ':!*/zz_generated*' ':!*.pb.go' | \
		xargs -0 -r ls -d 2>/dev/null | xargs -r go tool -modfile=hack/tools/go.mod gofumpt -w

.PHONY: generate
generate: ## Generate the code that is derived from other code, and the reference in docs.
	@hack/generate.sh

.PHONY: bench-scheduler
bench-scheduler: deps tools ## Measure how fast gardener-scheduler binds 2,000 and 10,000 shoots to 20 and 200 seeds.
	@bin/distribution build kubernetes etcd
	@go build -buildvcs=false -o bin/bench-scheduler ./test/bench/scheduler
	@for shoots in 2000 10000; do for seeds in 20 200; do \
		bin/bench-scheduler -shoots $$shoots -seeds $$seeds || exit; done; done
	@go test -run - -bench Decide ./internal/scheduler/shoot

.PHONY: test
test: deps tools ## Run unit and integration tests (TESTFLAGS="-race -run Find" is passed to go test).
	@bin/distribution build containerd runc machine kubernetes etcd registry vertical-pod-autoscaler
	@hack/test.sh $(TESTFLAGS)

.PHONY: test-corpus
test-corpus: tools ## Replay the recorded requests against a fresh garden (KIND=Shoot, SHOW=20 differences); print how many answers agree.
	@bin/distribution build kubernetes etcd
	@go run ./test/compat/replay -kind "$(KIND)" -show $(or $(SHOW),0) -least 99.5 -exact 97

.PHONY: rights
rights: bin/landscape ## Compare what may be done in the runtime cluster of landscape NAME with what was done, according to its audit log.
	@go run ./hack/rights -kubeconfig "$$(bin/landscape --name $(NAME) kubeconfig runtime)" -accepted test/rights/runtime.yaml .landscape/$(NAME)/machines/runtime-0/audit

# The shoot that the conformance tests run in, and how many run at the same time.
SHOOT ?= garden-local/local
PROCS ?= 2

.PHONY: conformance
conformance: tools ## Run Kubernetes' conformance tests in SHOOT=garden-local/local of the landscape NAME (FOCUS="Services|DNS" PROCS=2).
	@bin/distribution build kubernetes etcd e2e-test test-images
	@go run ./test/conformance -landscape $(NAME) -shoot $(SHOOT) -focus "$(FOCUS)" -procs $(PROCS)

.PHONY: test-compat
test-compat: tools ## Compare the served API and the CustomResourceDefinitions with the compatibility facts; print the counts.
	@bin/distribution build kubernetes etcd
	@go test -count=1 -v -run 'TestServed|TestFields|TestCRD|TestExamples' $(TESTFLAGS) ./test/compat

.PHONY: bench-api
bench-api: tools build ## Measure the garden API: rates, CPU time and memory (BENCHFLAGS="-o json -profiles DIR").
	@bin/distribution build kubernetes etcd
	@go run ./test/bench/api $(BENCHFLAGS)

.PHONY: bench-authorizer
bench-authorizer: ## Measure decisions and memory of the authorizer of seeds, for 1,000 seeds with 50,000 shoots and a tenth of that.
	@go run ./test/bench/authorizer
	@go run ./test/bench/authorizer -seeds 100 -shoots 5000

.PHONY: bench-shoot
bench-shoot: tools ## Measure duration, CPU and memory of shoots on the landscape NAME (BENCHFLAGS="-at-once 10 -rounds 1 -o markdown -picture FILE.svg").
	@go run ./test/bench/shoot -landscape $(NAME) $(BENCHFLAGS)

.PHONY: bench-nodes
bench-nodes: tools ## Measure how the nodes of an elastic pool follow its pods on the landscape NAME (BENCHFLAGS="-pods 60 -maximum 5 -picture FILE.svg").
	@go run ./test/bench/nodes -landscape $(NAME) $(BENCHFLAGS)

.PHONY: bench-apiserver
bench-apiserver: tools ## Measure how the kube-apiserver of a shoot follows its load on the landscape NAME (BENCHFLAGS="-clients 32 -scale-at 300m -o markdown").
	@go run ./test/bench/apiserver -landscape $(NAME) $(BENCHFLAGS)

.PHONY: chaos
chaos: tools ## Kill processes of the landscape NAME while shoots are created, changed and deleted (CHAOSFLAGS="-duration 5m").
	@go run ./test/chaos shoots -landscape $(NAME) $(CHAOSFLAGS)

.PHONY: chaos-nodes
chaos-nodes: tools ## Scale, roll, upgrade, rotate, kill, hibernate the nodes of a shoot of the landscape NAME, and probe its workload (CHAOSFLAGS="-steps kill").
	@go run ./test/chaos nodes -landscape $(NAME) $(CHAOSFLAGS)

.PHONY: chaos-upgrade
chaos-upgrade: tools ## Upgrade the landscape NAME from the revision FROM to this tree, then back and again while processes are killed (CHAOSFLAGS="-programs= -users 2").
	@go run ./test/chaos upgrade -landscape $(NAME) -from "$(FROM)" $(CHAOSFLAGS)

.PHONY: chaos-moves
chaos-moves: tools ## Move control planes between two seeds of the landscape NAME and kill processes (CHAOSFLAGS="-moves 50 -kinds workerless,nodes").
	@go run ./test/chaos moves -landscape $(NAME) $(CHAOSFLAGS)

.PHONY: chaos-up
chaos-up: tools distribution ## Kill processes of the seed while a landscape comes up, 20 times (CHAOSFLAGS="-rounds 3 -up-flags --without-shoot").
	@go run ./test/chaos up $(CHAOSFLAGS)

SEEDS ?= 50
SHOOTS ?= 2000

.PHONY: bench-fleet
bench-fleet: tools build ## Measure the processes of a garden with SEEDS=50 simulated seeds and SHOOTS=2000, and a tenth (BENCHFLAGS="-o json -profiles DIR").
	@bin/distribution build kubernetes etcd
	@go run ./test/bench/fleet -seeds $(SEEDS) -shoots $(SHOOTS) $(BENCHFLAGS)

.PHONY: bench-garden
bench-garden: tools ## Measure the gardener-controller-manager with many projects and shoots (BENCHFLAGS="-o json -scenario projects").
	@bin/distribution build kubernetes etcd
	@$(BUILD) ./cmd/gardener
	@go run ./test/bench/garden $(BENCHFLAGS)
