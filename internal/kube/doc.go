// Package kube holds the small verbs that every process uses on Kubernetes objects, written once: apply, await, health.
package kube
