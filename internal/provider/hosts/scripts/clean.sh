# Removes what is left of a machine. It may be run again. Usage: UID of the claim whose machine it was, or nothing for any
set -u
root=${ROOT:-}
dir=$root/var/lib/gardener-host
if [ -n "$1" ] && [ -e "$dir/claim" ] && [ "$(cat "$dir/claim")" != "$1" ]; then
  echo "the host is the machine of another claim" >&2
  exit 1
fi

# Units that restart others first. Some may not exist.
units="gardener-user-data gardener-node-init gardener-node-agent kubelet updatecacerts gardener-user sshd-ensurer gardener-swapoff"
for unit in $units; do
  systemctl disable --now "$unit.service" 2>/dev/null
done
systemctl stop containerd.service
# Containers outlive containerd. cgroup v1 has no cgroup.kill.
for group in "$root"/sys/fs/cgroup/kubepods.slice "$root"/sys/fs/cgroup/kubepods; do
  [ ! -e "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill"
done
find "$root"/sys/fs/cgroup/*/kubepods* -name cgroup.procs -exec cat {} + 2>/dev/null | while read -r pid; do
  kill -9 "$pid"
done
for path in "$root"/proc/[0-9]*; do
  [ "$(cat "$path/comm" 2>/dev/null)" != containerd-shim ] || kill -9 "${path##*/}"
done
systemctl stop kubepods.slice 2>/dev/null

# The last mount first. Disks that the operator has mounted at these directories stay. Nothing is removed below one that is left: it may be a directory of the host.
mounts() { awk '$2 ~ "^(/var/lib/(kubelet|containerd)|/run/containerd)/|^/run/netns/cni-" { print $2 }' "$root/proc/mounts"; }
mounts | sort -r | while read -r path; do
  umount -l "$(printf %b "$path")"
done
if [ -n "$(mounts)" ]; then
  echo "cannot unmount $(mounts | tr '\n' ' ')" >&2
  exit 1
fi

for path in "$root"/sys/class/net/*; do
  case "${path##*/}" in
  cni* | flannel* | cali* | vxlan.calico | cilium* | kube-* | nodelocaldns | veth*) ip link delete "${path##*/}" ;;
  esac
done
for tables in iptables ip6tables; do
  if command -v $tables-save >/dev/null; then
    $tables-save | grep -vE 'KUBE-|FLANNEL|CNI-|cali-|CILIUM' | $tables-restore
  fi
done
if command -v nft >/dev/null; then
  nft list tables | grep -E ' (kube-proxy|flannel-ipv[46]|calico|cali-.*)$' | while read -r table; do
    nft delete $table # the word table, the family and the name
  done
fi

if id gardener >/dev/null 2>&1; then userdel --remove gardener; fi
for unit in $units; do
  rm -rf "$root/etc/systemd/system/$unit.service" "$root/etc/systemd/system/$unit.service.d"
done
rm -rf "$root"/var/lib/kubelet/* "$root"/etc/kubernetes "$root"/etc/cni/net.d/* "$root"/var/lib/cni "$root"/run/netns/cni-* "$root"/run/flannel \
  "$root"/var/lib/containerd/* "$root"/run/containerd/* \
  "$root"/var/log/pods "$root"/var/log/containers "$root"/opt/bin/kubelet "$root"/opt/bin/kubectl "$root"/opt/bin/gardener-node-agent \
  "$root"/etc/sysctl.d/99-k8s-general.conf "$root"/etc/systemd/journald.conf.d/50-gardener.conf "$root"/etc/sudoers.d/99-gardener \
  "$root"/var/lib/ssl "$root"/var/lib/ca-certificates-local "$root"/var/lib/gardener-node-agent
# The settings of the operator. A host that was never a machine keeps what it has.
if [ -e "$dir/containerd" ]; then
  rm -rf "$root"/etc/containerd/*
  if ! cp -a "$dir/containerd/." "$root/etc/containerd"; then
    echo "cannot restore /etc/containerd" >&2
    exit 1
  fi
fi
update-ca-certificates >/dev/null
# The last cgroups first: a cgroup with others in it is not removed.
find "$root"/sys/fs/cgroup/kubepods* "$root"/sys/fs/cgroup/*/kubepods* -depth -type d -exec rmdir {} + 2>/dev/null
systemctl daemon-reload
swapon -a
# Last: until then, it is known whose machine this was. At once: half of it must not be restored by another run.
rm -rf "$dir.old"
[ ! -e "$dir" ] || mv "$dir" "$dir.old"
rm -rf "$dir.old"
