#!/bin/bash
# Makes the machine and containerd trust the CAs of the worker pool and of extensions, and removes those that it no longer has.
set -euo pipefail

certificates=/var/lib/ca-certificates-local
# Those that the machine image brings, which the option --localcertsdir would leave out.
image=/usr/local/share/ca-certificates
anchors=/etc/pki/ca-trust/source/anchors
trusted=/var/lib/gardener-node-agent/authorities-trusted

# Those of the image have a directory of their own, and do not count.
some=$(find "$certificates" -maxdepth 1 -name '*.crt' 2>/dev/null | head -n 1 || true)
if [ -z "$some" ] && [ ! -e "$trusted" ]; then
  exit 0
fi
if [ -n "$some" ]; then
  touch "$trusted"
fi

if command -v update-ca-certificates >/dev/null; then
  options=()
  if grep -q -e --localcertsdir "$(command -v update-ca-certificates)"; then
    # The default directory may be read-only.
    rm -rf "$certificates/image"
    mkdir -p "$certificates/image"
    if [ -d "$image" ]; then
      cp -r "$image/." "$certificates/image"
    fi
    options=(--localcertsdir "$certificates")
  fi
  # Others take the certificates in /etc/pki/trust/anchors.
  if [ -z "$some" ]; then
    options+=(--fresh) # also removes CAs
  fi
  update-ca-certificates "${options[@]}"
elif command -v update-ca-trust >/dev/null; then
  rm -f "$anchors"/gardener-*.crt "$anchors/gardener.crt"
  for certificate in "$certificates"/*.crt; do
    if [ -e "$certificate" ]; then
      cp "$certificate" "$anchors/gardener-$(basename "$certificate")"
    fi
  done
  update-ca-trust
fi
if [ -z "$some" ]; then
  rm -f "$trusted"
fi
systemctl try-restart containerd.service
