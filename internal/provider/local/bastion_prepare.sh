#!/bin/bash
# Runs the user data of a Bastion as a machine does, and keeps the key of the user, and a key of the SSH server, for the container of that. User data
# is for machines with systemd and sudo: what it says to them has no effect here.
set -euo pipefail

mkdir -p /opt/bastion /etc/sudoers.d
ln -sf /bin/true /opt/bastion/systemctl
export PATH=/opt/bastion:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
install -m 0700 /etc/bastion/userdata /opt/bastion/userdata
/opt/bastion/userdata

keys=/run/bastion
chmod 0755 "$keys"
install -m 0644 "$(getent passwd gardener | cut -d: -f6)/.ssh/authorized_keys" "$keys/authorized_keys"
if [ ! -e "$keys/host_key" ]; then
  rm -f /opt/bastion/host_key
  ssh-keygen -q -t ed25519 -N "" -C "" -f /opt/bastion/host_key
  install -m 0400 -o 1000 -g 1000 /opt/bastion/host_key "$keys/host_key.new"
  mv "$keys/host_key.new" "$keys/host_key"
fi
