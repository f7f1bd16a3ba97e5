package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry"
)

func TestReaderBeforeUse(t *testing.T) {
	reader := &registry.Reader{}
	if err := reader.Get(t.Context(), client.ObjectKey{Name: "seed"}, &corev1beta1.Seed{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("Get() before there are stores: %v, want it unavailable", err)
	}
	if err := reader.List(t.Context(), &corev1beta1.SeedList{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("List() before there are stores: %v, want it unavailable", err)
	}
	reader.Use(nil)
	if err := reader.Get(t.Context(), client.ObjectKey{Name: "secret"}, &corev1.Secret{}); !apierrors.IsInternalError(err) {
		t.Errorf("Get() of a kind that is not stored: %v, want an internal error", err)
	}
}
