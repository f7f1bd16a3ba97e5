package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterUID returns what identifies a cluster, whatever its address and credentials are: the UID of its namespace kube-system.
func ClusterUID(ctx context.Context, reader client.Reader) (types.UID, error) {
	namespace := &corev1.Namespace{}
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("read Namespace %q: %w", metav1.NamespaceSystem, err)
	}
	return namespace.UID, nil
}
