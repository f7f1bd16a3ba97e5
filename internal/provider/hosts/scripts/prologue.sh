
# Debian and Ubuntu: packages that nodes need, and no swap, with which the kubelet does not start. It is enabled again when the host is cleaned.
swapoff -a
cat >"${ROOT:-}/etc/systemd/system/gardener-swapoff.service" <<UNIT
[Unit]
Description=Turn swap off again after a reboot
After=swap.target
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/swapoff -a

[Install]
WantedBy=multi-user.target
UNIT
systemctl enable gardener-swapoff.service
packages=()
for package in ca-certificates conntrack ethtool iproute2 iptables kmod procps socat; do
  dpkg --status "$package" >/dev/null 2>&1 || packages+=("$package")
done
if [ "${#packages[@]}" -gt 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  apt-get install --yes --no-install-recommends "${packages[@]}"
fi
systemctl enable --now containerd.service
