#!/usr/bin/env bash
# Runs the tests that need no preparation, of all modules. Usage: hack/test.sh [GO TEST FLAGS]
#
# Nested modules are tested if they have tests of their own; most only pin the versions of products. The race detector is
# optional (-race): it compiles every dependency a second time, two minutes of CPU for those of the API types alone.
set -euo pipefail
cd "$(dirname "$0")/.."

# As `make build` compiles: with other settings, every dependency is compiled a second time. The race detector needs cgo.
[[ " $* " == *" -race "* ]] || export CGO_ENABLED=0 GOFLAGS=-trimpath

modules=(.)
# An assignment of its own, so that this ends when git fails. The clone may belong to another user.
files=$(git -c safe.directory="$PWD" ls-files --cached --others --exclude-standard 'distribution/*_test.go')
for file in $files; do
  dir=$(dirname "$file")
  while [[ ! -f $dir/go.mod && $dir != . ]]; do dir=$(dirname "$dir"); done
  [[ " ${modules[*]} " == *" $dir "* ]] || modules+=("$dir")
done

status=0
for module in "${modules[@]}"; do
  [[ $module == . ]] || echo "module $module" >&2
  # Some tests wait for minutes for real servers on a busy computer; a test that is cut off leaves processes and networks behind.
  go -C "$module" test -timeout 15m "$@" ./... || status=1
done
exit $status
