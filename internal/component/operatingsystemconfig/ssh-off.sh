#!/bin/bash
# SSH access is disabled: stops the SSH server, its socket and its sessions.
set -euo pipefail

for unit in ssh.socket sshd.socket ssh.service sshd.service; do
  if systemctl cat "$unit" >/dev/null 2>&1; then
    systemctl disable --now "$unit"
  fi
done
# Since OpenSSH 9.8, sessions are processes of other programs than the server, and outlive it.
pkill -x 'sshd(-session|-auth)?' || true
