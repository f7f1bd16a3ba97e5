#!/usr/bin/env bash
# Generates generated.proto and generated.pb.go for the API groups that clients may talk to in the Kubernetes protobuf
# format. Field numbers are in the struct tags of the types; they are wire format and never change.
#
# Needs protoc with its include files (Debian: protobuf-compiler libprotobuf-dev) and the Go module proxy. Usage: hack/generate-protobuf.sh
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.36.3 # of k8s.io/code-generator, the same as the other k8s.io modules
module=gardener.cloud/gardener
packages=(
  api/core/v1
  api/core/v1beta1
  api/security/v1alpha1
  api/seedmanagement/v1alpha1
  api/operations/v1alpha1
  api/settings/v1alpha1
  api/authentication/v1alpha1
)
# Kubernetes packages that these refer to; "-" means that nothing is generated for them.
foreign=(
  -k8s.io/apimachinery/pkg/util/intstr
  -k8s.io/apimachinery/pkg/api/resource
  -k8s.io/apimachinery/pkg/runtime/schema
  -k8s.io/apimachinery/pkg/runtime
  -k8s.io/apimachinery/pkg/apis/meta/v1
  -k8s.io/api/core/v1
  -k8s.io/api/rbac/v1
  -k8s.io/api/autoscaling/v1
  -k8s.io/api/networking/v1
  -k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1
)

command -v protoc >/dev/null || { echo "protoc not found; install it with: apt-get install protobuf-compiler libprotobuf-dev" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/src/k8s.io" "$work/src/github.com/gogo" "$work/src/$(dirname $module)"
GOBIN="$work/bin" go install "k8s.io/code-generator/cmd/go-to-protobuf@$version" \
  "k8s.io/code-generator/cmd/go-to-protobuf/protoc-gen-gogo@$version"
GOBIN="$work/bin" go install golang.org/x/tools/cmd/goimports@v0.40.0 # called by go-to-protobuf

# protoc finds files by import path, so the modules are linked below one directory.
for m in api apimachinery apiextensions-apiserver; do
  ln -s "$(go list -m -f '{{.Dir}}' k8s.io/$m)" "$work/src/k8s.io/$m"
done
gogo=$(go mod download -json github.com/gogo/protobuf@v1.3.2 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
ln -s "$gogo" "$work/src/github.com/gogo/protobuf"
ln -s "$PWD" "$work/src/$module"

list=$(printf "$module/%s," "${packages[@]}")
apimachinery=$(printf '%s,' "${foreign[@]}")
PATH="$work/bin:$PATH" go-to-protobuf \
  --output-dir "$work/src" --proto-import "$work/src" \
  --apimachinery-packages "${apimachinery%,}" --packages "${list%,}"
