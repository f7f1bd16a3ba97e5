#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, as far as they are missing. Usage: hack/deps.sh [PACKAGE...]
#
# Without arguments it installs the list below, and checks for Go, which it does not install. It never asks, and prints what it does;
# for users who may not install packages, it prints the command. It takes no time when nothing is missing.
set -euo pipefail

packages=(
  make git ca-certificates
  gcc libc6-dev             # go test -race; runc
  pkg-config libseccomp-dev # runc
  mmdebstrap                # the machine image
  iproute2                  # bridges, routes and addresses of the local landscape
  nftables procps           # end-to-end tests check what a landscape leaves behind: nftables rules, kernel settings
)

# Prints what is wrong with Go, and ends.
no_go() {
  echo "deps: $1: install Go $needed or newer (https://go.dev/doc/install) and put its bin directory into PATH" >&2
  echo "deps: if only sudo does not find it, use: sudo env PATH=\"\$PATH\" make up" >&2
  exit 1
}

if [[ $# -gt 0 ]]; then
  packages=("$@")
else
  root=$(cd "$(dirname "$0")/.." && pwd)
  needed=$(sed -n 's/^go //p' "$root/go.mod")
  command -v go >/dev/null || no_go "go not found in PATH"
  # Run in the checkout, where a Go that downloads toolchains prints the one it selects; an old one fails to read go.mod.
  have=$(go -C "$root" env GOVERSION 2>/dev/null) || have=$(cd / && go version 2>&1 | sed -n 's/.* \(go[0-9][^ ]*\).*/\1/p')
  # Development versions, such as "devel", are not checked.
  if [[ $have =~ ^go([0-9.]+) ]] && [[ $(printf '%s\n' "$needed" "${BASH_REMATCH[1]}" | sort -V | head -1) != "$needed" ]]; then
    no_go "the go in PATH is $have"
  fi
fi

if ! command -v dpkg-query >/dev/null; then
  echo "deps: this is not Debian; make sure these are installed: ${packages[*]}" >&2
  exit 0
fi

declare -A installed=()
while read -r package; do
  installed[$package]=1
done < <(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p')

missing=()
for package in "${packages[@]}"; do
  [[ -n ${installed[$package]:-} ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

install=(apt-get install --yes --no-install-recommends "${missing[@]}")
if [[ $EUID -ne 0 ]]; then
  echo "deps: missing Debian packages; install them with: sudo ${install[*]}" >&2
  exit 1
fi

echo "deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
# Another apt may be running, as after the boot of a fresh machine: wait for it.
options=(--quiet --quiet --option DPkg::Lock::Timeout=300)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The update fails if one package source cannot be read, but the others may have all packages.
if ! { apt-get update "${options[@]}"; "${install[@]}" "${options[@]}"; } </dev/null >"$log" 2>&1; then
  cat "$log" >&2
  echo "deps: installing ${missing[*]} failed" >&2
  exit 1
fi
