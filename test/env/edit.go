package env

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Edit changes an object as another client would, and retries after conflicts. Afterwards it is as the API server has it.
func Edit[T client.Object](t testing.TB, c client.Client, object T, change func(T)) {
	t.Helper()
	write(t, c, object, change, func() error { return c.Update(t.Context(), object) })
}

// EditStatus does the same to the status of an object.
func EditStatus[T client.Object](t testing.TB, c client.Client, object T, change func(T)) {
	t.Helper()
	write(t, c, object, change, func() error { return c.Status().Update(t.Context(), object) })
}

// Bind does the same to a Shoot by its subresource binding: other controllers write the Shoot, too.
func Bind(t testing.TB, c client.Client, shoot *corev1beta1.Shoot, seed string) {
	t.Helper()
	write(t, c, shoot, func(s *corev1beta1.Shoot) { s.Spec.SeedName = &seed }, func() error {
		return c.SubResource("binding").Update(t.Context(), shoot)
	})
}

func write[T client.Object](t testing.TB, c client.Client, object T, change func(T), update func() error) {
	t.Helper()
	for {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		change(object)
		err := update()
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatalf("change %T %s: %v", object, object.GetName(), err)
		}
	}
}
