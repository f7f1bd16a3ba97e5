#!/bin/bash
# SSH access is disabled: no key lets the user gardener log in.
set -euo pipefail

if id gardener >/dev/null 2>&1; then
  rm -f "$(getent passwd gardener | cut -d: -f6)/.ssh/authorized_keys"
fi
