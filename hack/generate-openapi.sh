#!/usr/bin/env bash
# Generates the OpenAPI definitions of the types that gardener-apiserver serves, and of the Kubernetes types they refer to.
# The definitions of our types have the names of the original (openapi-model-package in doc.go), as clients such as the dashboard look for them.
# Usage: hack/generate-openapi.sh [DIRECTORY]
set -euo pipefail

tools=$(cd "$(dirname "$0")/tools" && pwd)/go.mod
cd "${1:-$(dirname "$0")/..}"

module=gardener.cloud/gardener
gardener=(core/v1beta1 core/v1 authentication/v1alpha1 security/v1alpha1 seedmanagement/v1alpha1 operations/v1alpha1 settings/v1alpha1)
foreign=(
  k8s.io/api/autoscaling/v1
  k8s.io/api/core/v1
  k8s.io/api/networking/v1
  k8s.io/api/rbac/v1
  k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1
  k8s.io/apimachinery/pkg/api/resource
  k8s.io/apimachinery/pkg/apis/meta/v1
  k8s.io/apimachinery/pkg/runtime
  k8s.io/apimachinery/pkg/util/intstr
  k8s.io/apimachinery/pkg/version
)
# The report of the generator's linter is not used: names and list types are those of the public API.
go tool -modfile="$tools" openapi-gen --output-dir internal/apiserver/openapi --output-pkg "$module/internal/apiserver/openapi" \
  --output-file zz_generated.openapi.go --report-filename /dev/null \
  --output-model-name-file zz_generated.model_name.go --readonly-pkg "$(IFS=,; echo "${foreign[*]}")" \
  "${foreign[@]}" "${gardener[@]/#/$module/api/}"
