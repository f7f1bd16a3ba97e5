#!/bin/bash
# Makes the machine and containerd trust the CAs of the worker pool, and removes those that it no longer has.
set -euo pipefail

bundle=/usr/local/share/ca-certificates/gardener.crt
anchor=/etc/pki/ca-trust/source/anchors/gardener.crt
trusted=/var/lib/gardener-node-agent/authorities-trusted
if [ ! -e "$bundle" ] && [ ! -e "$trusted" ]; then
  exit 0
fi
if command -v update-ca-certificates >/dev/null; then
  if [ -e "$bundle" ]; then
    update-ca-certificates
  else
    update-ca-certificates --fresh # also removes CAs
  fi
elif command -v update-ca-trust >/dev/null; then
  if [ -e "$bundle" ]; then
    cp "$bundle" "$anchor"
  else
    rm -f "$anchor"
  fi
  update-ca-trust
fi
if [ -e "$bundle" ]; then
  touch "$trusted"
else
  rm -f "$trusted"
fi
systemctl try-restart containerd.service
