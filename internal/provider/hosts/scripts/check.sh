# Prints what the host is, and each reason why it cannot be a machine: what it lacks, or what is left of a machine. It changes nothing.
set -u
root=${ROOT:-}
problem() { echo "problem=$*"; }

echo "hostname=$(hostname)"
echo "cpu=$(nproc)"
sed -n 's/^MemTotal: *\([0-9]*\) kB$/memory=\1Ki/p' "$root/proc/meminfo"

[ "$(id -u)" = 0 ] || problem "the user is not root: let it use sudo without a password"
[ -d "$root/run/systemd/system" ] || problem "it does not run systemd"
case "$(containerd --version 2>/dev/null)" in
*" v2."* | *" 2."*) ;;
*) problem "containerd 2 is not installed" ;;
esac
[ -e "$root/opt/cni/bin/loopback" ] || problem "the CNI plugins are not in /opt/cni/bin"

for unit in gardener-user-data gardener-node-init gardener-node-agent kubelet; do
  if systemctl is-active --quiet "$unit.service"; then problem "$unit.service is active"; fi
done
for path in /var/lib/gardener-host /var/lib/gardener-node-agent /etc/kubernetes /var/lib/cni /var/log/pods; do
  [ ! -e "$root$path" ] || problem "$path exists"
done
# /var/lib/kubelet itself may be a disk of the operator.
for path in "$root"/var/lib/kubelet/* "$root"/etc/cni/net.d/* "$root"/sys/fs/cgroup/kubepods* "$root"/sys/fs/cgroup/*/kubepods*; do
  [ "${path##*/}" = lost+found ] || [ ! -e "$path" ] || problem "${path#"$root"} exists"
done
awk '$2 ~ "^(/var/lib/(kubelet|containerd)|/run/containerd)/|^/run/netns/cni-" { print "problem=" $2 " is mounted" }' "$root/proc/mounts"
for path in "$root"/sys/class/net/*; do
  case "${path##*/}" in
  cni* | flannel* | cali* | vxlan.calico | cilium* | kube-* | nodelocaldns | veth*) problem "the network interface ${path##*/} exists" ;;
  esac
done
if command -v nft >/dev/null; then
  nft list tables | sed -nE 's/^(table .* (kube-proxy|flannel-ipv[46]|calico|cali-.*))$/problem=the nftables \1 exists/p'
fi
for path in "$root"/proc/[0-9]*; do
  [ "$(cat "$path/comm" 2>/dev/null)" != containerd-shim ] || problem "a container is running: process ${path##*/}"
done
