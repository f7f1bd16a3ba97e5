#!/bin/bash
# Lets the user gardener log in with the keys of the shoot, and become root.
set -euo pipefail

keys=/var/lib/gardener-node-agent/authorized_keys
if ! id gardener >/dev/null 2>&1; then
  useradd --create-home --shell /bin/bash gardener
  passwd --lock gardener >/dev/null
fi
home=$(getent passwd gardener | cut -d: -f6)
install -d -m 0700 -o gardener -g gardener "$home/.ssh"
install -m 0600 -o gardener -g gardener "$keys" "$home/.ssh/authorized_keys"
if [ -d /etc/sudoers.d ]; then
  echo 'gardener ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/99-gardener
  chmod 0440 /etc/sudoers.d/99-gardener
fi
