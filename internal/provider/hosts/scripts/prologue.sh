
# Debian and Ubuntu: packages that nodes need, and no swap, with which the kubelet does not start. It is enabled again when the host is cleaned.
swapoff -a
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
