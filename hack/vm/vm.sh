#!/usr/bin/env bash
# Runs commands of this checkout in a virtual machine with Debian, its kernel and control groups v2. Usage, as root:
#
#   hack/vm/vm.sh start                  # create the disk if it is missing, boot, copy the checkout and the built products
#   hack/vm/vm.sh run bin/landscape up   # in the copy of the checkout; without a command, a shell
#   hack/vm/vm.sh sync                   # copy again what changed
#   hack/vm/vm.sh stop
#   hack/vm/vm.sh delete                 # the disk too
#
# Nothing is compiled in it: run `make tools distribution` before. It needs the Debian packages qemu-system-x86, mmdebstrap and
# openssh-client. Settings are in the environment: SUITE, CPUS, MEMORY, DISK, ACCEL ("tcg" emulates the processor, without /dev/kvm).
set -euo pipefail
cd "$(dirname "$0")/../.."

suite=${SUITE:-bookworm}
state=${XDG_CACHE_HOME:-$HOME/.cache}/gardener/vm/$suite
cache=${GARDENER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gardener/distribution}
ssh=(ssh -i "$state/key" -o UserKnownHostsFile="$state/known_hosts" -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR -p "${PORT:-2022}" root@127.0.0.1)

packages=(
  linux-image-amd64 systemd-sysv udev dbus kmod # boots as any Debian does, with control groups v2
  systemd-timesyncd iproute2 openssh-server ca-certificates
  rsync nftables procps # copy the checkout; see what a landscape does
)

# Writes a disk with Debian. The kernel starts from a file of its own, so the disk needs no boot loader.
create() {
  local root=$state/root
  rm -rf "$state" && mkdir -p "$state"
  ssh-keygen -q -t ed25519 -N '' -f "$state/key"
  mmdebstrap --variant=minbase --include="$(IFS=,; echo "${packages[*]}")" "$suite" "$root"
  install -D -m 600 "$state/key.pub" "$root/root/.ssh/authorized_keys"
  cp -L "$root/vmlinuz" "$root/initrd.img" "$state/"
  echo gardener >"$root/etc/hostname"
  echo "nameserver 10.0.2.3" >"$root/etc/resolv.conf"
  printf '[Match]\nName=en*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/50-ethernet.network"
  # The host waits for this line.
  printf '[Unit]\nAfter=ssh.service network-online.target\nWants=network-online.target\n[Service]\nExecStart=sh -c "echo virtual machine is ready >/dev/ttyS0"\n' \
    >"$root/etc/systemd/system/ready.service"
  mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
  ln -s ../ready.service "$root/etc/systemd/system/multi-user.target.wants/"
  for share in checkout cache answers; do
    mkdir -p "$root/host/$share"
    echo "$share /host/$share 9p ro,trans=virtio,version=9p2000.L,msize=524288,nofail 0 0" >>"$root/etc/fstab"
  done
  chroot "$root" systemctl --quiet enable systemd-networkd
  mkfs.ext4 -q -L root -d "$root" "$state/disk" "${DISK:-40G}"
  rm -rf "$root"
}

share() { echo "local,mount_tag=$1,path=$2,security_model=none,readonly=on,multidevs=remap"; }

start() {
  [[ -e $state/disk ]] || create
  mkdir -p "$state/answers"
  local accel=${ACCEL:-kvm} arguments="root=LABEL=root rw console=ttyS0 quiet"
  if [[ $accel == tcg ]]; then
    accel=tcg,thread=multi
    # Emulated, mitigations and other clocks cost more than all else.
    arguments+=" mitigations=off tsc=reliable clocksource=tsc"
  fi
  nice qemu-system-x86_64 -accel "$accel" -cpu max -smp "${CPUS:-2}" -m "${MEMORY:-8G}" -display none -monitor none \
    -kernel "$state/vmlinuz" -initrd "$state/initrd.img" -append "$arguments" \
    -drive "file=$state/disk,format=raw,if=virtio,cache=unsafe,discard=unmap" \
    -nic "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:${PORT:-2022}-:22" \
    -virtfs "$(share checkout "$PWD")" -virtfs "$(share cache "$cache")" -virtfs "$(share answers "$state/answers")" \
    -serial "file:$state/console" -pidfile "$state/pid" -daemonize
  # The timeout is that of an emulated processor.
  timeout 900 grep -q -m1 "virtual machine is ready" <(tail --pid "$(cat "$state/pid")" -n +1 -F "$state/console" 2>/dev/null) ||
    { tail "$state/console" >&2; echo "vm: the virtual machine did not start, see $state/console" >&2; exit 1; }
  sync_files
}

# asking writes a program in the name of another, which the tools run to compute the keys of products. On the host it asks that one, and
# notes the answer. In the virtual machine it repeats the note: go would read thousands of files first, and packages may be others there.
asking() {
  printf '#!/bin/bash\nnote=%s/answers/$(printf "%%s\\n" "$PWD" %s "$@" | sha256sum | cut -c1-40)\n%s\n' "$1" "$2" "$3"
}

sync_files() {
  mkdir -p "$state/asking" "$state/answers/bin"
  for program in go dpkg-query; do
    asking "$state" $program "exec $(command -v $program) \"\$@\" > >(tee \"\$note\")" >"$state/asking/$program"
    asking /host $program 'exec cat "$note"' >"$state/answers/bin/$program"
  done
  chmod +x "$state"/asking/* "$state"/answers/bin/*
  # One by one, as the tools ask once for what products have in common.
  for product in distribution/*/product.yaml; do
    PATH=$state/asking:$PATH bin/distribution path "$(basename "$(dirname "$product")")" >/dev/null || echo "vm: it will be missing" >&2
  done
  run "mkdir -p ~/.cache/gardener
    rsync -a --delete --exclude=/.git --exclude=/.landscape --exclude=/.artifacts /host/checkout/ '$PWD/'
    rsync -a --delete --exclude=/.locks --exclude=/.tmp /host/cache/ ~/.cache/gardener/distribution/"
}

# The path of the checkout is the same as on the host.
run() {
  "${ssh[@]}" "mkdir -p '$PWD' && cd '$PWD' && PATH=/host/answers/bin:\$PATH && ${*:-exec bash}"
}

stop() {
  [[ -e $state/pid ]] || return 0
  local pid
  pid=$(cat "$state/pid")
  "${ssh[@]}" systemctl poweroff || kill "$pid"
  tail --pid "$pid" -f /dev/null
}

case ${1:-} in
start) start ;;
sync) sync_files ;;
run) run "${@:2}" ;;
stop) stop ;;
delete) stop && rm -rf "$state" ;;
*) sed -n '2,/^set/{/^#/s/^# \?//p}' "$0" >&2 && exit 1 ;;
esac
