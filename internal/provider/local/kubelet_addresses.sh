#!/bin/sh
# Names the addresses of both IP families of this machine to the kubelet, which detects only one. The file is gone after a boot.
set -eu
case "${KUBELET_EXTRA_ARGS:-}" in *--node-ip*) exit ;; esac
address() { ip -o "-$1" address show dev eth0 scope global | head -n 1 | while read -r _ _ _ network _; do echo "${network%/*}"; done; }
ipv6=$(address 6)
echo "KUBELET_EXTRA_ARGS=${KUBELET_EXTRA_ARGS:-} --node-ip=$(address 4)${ipv6:+,$ipv6}" > /run/kubelet-addresses
