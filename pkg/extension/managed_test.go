package extension

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// What is applied while a former ManagedResource is being deleted would be deleted with it, so the object is not ready before it is applied again.
func TestApplyWaitsForADeletion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const namespace, name = "shoot--dev--crazy", "extension-hello"
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"example.com/blocked"}}}
	if err := c.Create(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	var waiting *Wait
	if err := DeleteManaged(t.Context(), c, namespace, name); !errors.As(err, &waiting) {
		t.Fatalf("DeleteManaged() = %v", err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hello"}}
	if err := ApplyShoot(t.Context(), c, "provider-hello", namespace, name, object); !errors.As(err, &waiting) || waiting.After == 0 {
		t.Errorf("while it is being deleted: ApplyShoot() = %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); !apierrors.IsNotFound(err) { // the fake client ends the deletion
		t.Fatal(err)
	}
	if err := ApplyShoot(t.Context(), c, "provider-hello", namespace, name, object); err != nil {
		t.Errorf("when it is deleted: ApplyShoot() = %v", err)
	}
}
