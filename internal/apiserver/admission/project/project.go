// Package project finds the Project that a namespace belongs to.
package project

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ForNamespace returns the project of a namespace. It is shared: do not change it.
func ForNamespace(ctx context.Context, garden client.Reader, namespace string) (*corev1beta1.Project, error) {
	projects := &corev1beta1.ProjectList{}
	if err := garden.List(ctx, projects, client.MatchingFields{"spec.namespace": namespace}); err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	if len(projects.Items) == 0 {
		return nil, fmt.Errorf("no project has the namespace %q", namespace)
	}
	return &projects.Items[0], nil
}
