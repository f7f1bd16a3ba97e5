#!/bin/bash
# SSH access is disabled: stops the SSH server, its socket and its sessions.
set -euo pipefail

for unit in ssh.socket sshd.socket ssh.service sshd.service; do
  if systemctl cat "$unit" >/dev/null 2>&1; then
    systemctl disable --now "$unit"
  fi
done
if id gardener >/dev/null 2>&1; then
  rm -f "$(getent passwd gardener | cut -d: -f6)/.ssh/authorized_keys"
fi
pkill -x sshd || true
