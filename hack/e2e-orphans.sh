#!/usr/bin/env bash
# Takes down the landscapes of end-to-end tests that were killed, which would use memory for ever. A running test holds a lock on its file.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=.landscape/e2e
for landscape in "$dir"/e2e-*/; do
  [[ -d $landscape ]] || continue
  name=$(basename "$landscape")
  lock=$dir/lock-$name
  exec {fd}>>"$lock"
  if flock --nonblock "$fd"; then
    echo "Taking down landscape $name of an end-to-end test that was killed"
    make --no-print-directory bin/landscape
    # The landscape's processes must not inherit the lock.
    bin/landscape down --yes --name "$name" --dir "$dir" {fd}>&- || echo "Taking down landscape $name failed" >&2
    rm -f "$lock"
  fi
  exec {fd}>&-
done
