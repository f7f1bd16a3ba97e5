// Package kube has what every process does with Kubernetes objects: apply them, wait for them, check their health, patch metadata.
package kube
