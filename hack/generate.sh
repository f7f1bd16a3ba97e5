#!/usr/bin/env bash
# Generates the code that is derived from other code. Usage: hack/generate.sh [DIRECTORY]
#
# DIRECTORY is the root of the tree to work on, this one by default; `make check` passes a copy. Packages are selected by
# the marker in their doc.go. Running it twice changes nothing.
set -euo pipefail

tools=$(cd "$(dirname "$0")/tools" && pwd)/go.mod
cd "${1:-$(dirname "$0")/..}"

# tool NAME ARGS... runs a generator in the version that hack/tools/go.mod pins.
tool() { go tool -modfile="$tools" "$@"; }

# packages_with MARKER prints the packages (./api/core/v1beta1) whose doc.go has the marker.
packages_with() {
  local roots=() root
  for root in api pkg; do [[ -d $root ]] && roots+=("./$root"); done
  [[ ${#roots[@]} -eq 0 ]] || { grep -rlE --include=doc.go "^// \+$1\$" "${roots[@]}" || true; } | xargs -r -n1 dirname | sort
}

# deepcopy writes DeepCopy and DeepCopyObject for the packages marked with +k8s:deepcopy-gen=package.
deepcopy() {
  local packages file
  mapfile -t packages < <(packages_with 'k8s:deepcopy-gen=package')
  # A package that lost its marker keeps no generated code.
  for file in $(find api pkg -name zz_generated.deepcopy.go 2>/dev/null); do
    [[ " ${packages[*]} " == *" ./$(dirname "$file") "* ]] || rm -v "$file"
  done
  [[ ${#packages[@]} -gt 0 ]] || return 0
  tool deepcopy-gen --output-file zz_generated.deepcopy.go "${packages[@]}"
}

deepcopy

# crds writes the CustomResourceDefinitions.
crds() { "$(dirname "$tools")/../generate-crds.sh" "$PWD"; }

crds

# openapi writes the OpenAPI definitions.
openapi() { "$(dirname "$tools")/../generate-openapi.sh" "$PWD"; }

openapi

# reference writes docs/reference, for which it builds the commands as `make build` does.
reference() {
  local bin
  bin=$(mktemp -d)
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$bin/" ./cmd/distribution ./cmd/landscape ./cmd/gardener ./cmd/gardenctl &&
    go run ./hack/reference -commands "$bin" || { rm -rf "$bin"; return 1; }
  rm -rf "$bin"
}

reference
