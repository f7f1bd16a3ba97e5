#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, as far as they are missing. Usage: hack/deps.sh [PACKAGE...]
#
# Without arguments it is about the list below, and about Go, which it does not install. It asks nothing and says what it does; who may not install packages is told
# the command instead. Done in no time when everything is there.
set -euo pipefail

packages=(
  make git ca-certificates
  gcc libc6-dev             # go test -race; runc
  pkg-config libseccomp-dev # runc
  mmdebstrap                # the machine image
  iproute2                  # bridges, routes and addresses of the local landscape
  nftables procps           # end-to-end tests look at what a landscape leaves: rules of the firewall, kernel settings
)

# Says what is wrong with Go, and ends.
no_go() {
  echo "deps: $1: install Go $needed or newer (https://go.dev/doc/install) and put its bin directory into PATH" >&2
  echo "deps: if you have it and it is only sudo that does not find it: sudo env PATH=\"\$PATH\" make up" >&2
  exit 1
}

if [[ $# -gt 0 ]]; then
  packages=("$@")
else
  root=$(cd "$(dirname "$0")/.." && pwd)
  needed=$(sed -n 's/^go //p' "$root/go.mod")
  command -v go >/dev/null || no_go "there is no go in PATH"
  # Asked in the checkout, where a Go that fetches newer ones by itself says which it takes; an old one fails to read go.mod.
  have=$(go -C "$root" env GOVERSION 2>/dev/null) || have=$(cd / && go version 2>&1 | sed -n 's/.* \(go[0-9][^ ]*\).*/\1/p')
  # What is no release, such as "devel", is its builder's business.
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
# Another apt may be at work, as after the boot of a fresh machine: wait for it.
options=(--quiet --quiet --option DPkg::Lock::Timeout=300)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One source of packages that cannot be read fails the update, and the others may have all that is needed.
if ! { apt-get update "${options[@]}"; "${install[@]}" "${options[@]}"; } </dev/null >"$log" 2>&1; then
  cat "$log" >&2
  echo "deps: installing ${missing[*]} failed" >&2
  exit 1
fi
