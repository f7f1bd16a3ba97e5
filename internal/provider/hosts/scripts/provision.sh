# Reads user data, and has systemd run it until it succeeds once. It may be run again: for the same claim, it changes nothing. Usage: UID of the claim
set -eu
umask 077
root=${ROOT:-}
dir=/var/lib/gardener-host
mkdir -p "$root$dir"
if [ -e "$root$dir/claim" ] && [ "$(cat "$root$dir/claim")" != "$1" ]; then
  echo "the host is the machine of another claim" >&2
  exit 1
fi
printf %s "$1" >"$root$dir/claim"
# The operator's settings of containerd, for when the host is cleaned.
if [ ! -e "$root$dir/containerd" ]; then
  mkdir -p "$root/etc/containerd"
  rm -rf "$root$dir/containerd.new"
  mkdir "$root$dir/containerd.new"
  cp -a "$root/etc/containerd/." "$root$dir/containerd.new"
  mv "$root$dir/containerd.new" "$root$dir/containerd"
fi
if [ ! -e "$root$dir/user-data" ]; then
  cat >"$root$dir/user-data.new"
  mv "$root$dir/user-data.new" "$root$dir/user-data"
fi
cat >"$root/etc/systemd/system/gardener-user-data.service" <<UNIT
[Unit]
Description=Make this host a machine of a shoot
Wants=network-online.target
After=network-online.target
ConditionPathExists=!$dir/done
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=10
ExecStart=/bin/bash $dir/user-data
ExecStartPost=/bin/touch $dir/done

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable gardener-user-data.service
systemctl start --no-block gardener-user-data.service
