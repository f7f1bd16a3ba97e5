// Package removaltaint knows the taints by which a cluster-autoscaler keeps pods away from nodes that it removes.
package removaltaint

import corev1 "k8s.io/api/core/v1"

const (
	// Key is that of the taint of nodes that are being drained. Its value is the time.
	Key = "ToBeDeletedByClusterAutoscaler"
	// candidateKey is that of the taint of nodes that are not needed. The original writes it.
	candidateKey = "DeletionCandidateOfClusterAutoscaler"
)

// Is reports whether a taint is one of nodes that are drained, or one of the original for idle nodes.
func Is(t corev1.Taint) bool {
	return t.Key == Key || t.Key == candidateKey
}
