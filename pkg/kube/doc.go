// Package kube applies Kubernetes objects, and has their health and the conditions of Gardener's resources.
package kube
