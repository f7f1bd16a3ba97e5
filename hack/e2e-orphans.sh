#!/usr/bin/env bash
# Takes down the landscapes of end-to-end tests that were killed: they would take memory for ever. A test that runs has locked its file.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=.landscape/e2e
for landscape in "$dir"/e2e-*/; do
  [[ -d $landscape ]] || continue
  name=$(basename "$landscape")
  lock=$dir/lock-$name
  exec {fd}>>"$lock"
  if flock --nonblock "$fd"; then
    echo "Landscape $name was left by an end-to-end test that was killed"
    make --no-print-directory bin/landscape
    # The landscape's processes must not keep the lock.
    bin/landscape down --yes --name "$name" --dir "$dir" {fd}>&- || echo "Landscape $name is still there" >&2
    rm -f "$lock"
  fi
  exec {fd}>&-
done
