#!/usr/bin/env bash
# Writes the CustomResourceDefinitions of our API groups. Usage: hack/generate-crds.sh [DIRECTORY]
#
# DIRECTORY is the root of the tree to work on, this one by default. The manifests come from the Go types in api/ and go to
# internal/component/crds/<group>/, or pkg/extension/crds/<group>/ if authors of extensions need them, from where Go embeds them, and those of the
# gardener-operator and of provider-hosts to their charts. Running it twice changes nothing.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/hack/tools/go.mod
cd "${1:-$(dirname "$0")/..}"

# Packages of api/ whose kinds are CustomResourceDefinitions.
packages=(autoscaling dashboard druid extensions machine operator resources)

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# generateEmbeddedObjectMeta: the metadata of templates is kept; without it the API server would drop labels and annotations.
# allowDangerousTypes: the API has two floating point numbers.
paths=$(printf './api/%s/v1alpha1;' "${packages[@]}")
go tool -modfile="$tools" controller-gen crd:generateEmbeddedObjectMeta=true,allowDangerousTypes=true \
  paths="${paths%;}" output:crd:dir="$out"

for package in "${packages[@]}"; do
  target=internal/component/crds/$package
  if [[ $package == extensions || $package == resources ]]; then target=pkg/extension/crds/$package; fi
  mkdir -p "$target"
  rm -f "$target"/*.yaml # also removes manifests of removed kinds
  mv "$out/$package".*.yaml "$target/"
done
[[ -z $(ls -A "$out") ]] || { echo "manifests of an unknown group: $(ls "$out")" >&2; exit 1; }

# The chart of the gardener-operator has a copy of its kinds. Helm keeps them when the chart is uninstalled: deleting them deletes the Garden,
# without asking the webhook that would refuse it.
for kind in gardens extensions; do
  sed '0,/^  annotations:$/s||&\n    helm.sh/resource-policy: keep|' \
    "internal/component/crds/operator/operator.gardener.cloud_$kind.yaml" > "charts/operator/templates/crd-$kind.yaml"
done

# Those of provider-hosts are in its chart only. gardener-resource-manager keeps them when the extension is uninstalled: they are the inventory.
go tool -modfile="$tools" controller-gen crd paths=./api/provider/hosts/v1alpha1 output:crd:dir="$out"
for kind in hosts hostclaims addresspools addressclaims; do
  sed '0,/^  annotations:$/s||&\n    resources.gardener.cloud/keep-object: "true"|' \
    "$out/hosts.provider.extensions.gardener.cloud_$kind.yaml" > "charts/provider-hosts/definitions/crd-$kind.yaml"
done

# CustomResourceDefinitions of other projects, from their modules. Their versions may be in a go.mod that is not in a copy of the tree.
go run ./hack/foreigncrds internal/component/crds "$root"
