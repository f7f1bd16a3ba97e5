package bootstrap

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestIdentity(t *testing.T) {
	written := map[string]string{"cluster-identity": "garden", "origin": "gardener-apiserver"}
	for name, tc := range map[string]struct {
		found *corev1.ConfigMap
		want  map[string]string
		fixed bool
	}{
		"none":                        {want: written, fixed: true},
		"written":                     {found: &corev1.ConfigMap{Immutable: new(true), Data: written}, want: written, fixed: true},
		"the same, of unknown origin": {found: &corev1.ConfigMap{Data: map[string]string{"cluster-identity": "garden"}}, want: written, fixed: true},
		"another": {
			found: &corev1.ConfigMap{Data: map[string]string{"cluster-identity": "other"}}, want: map[string]string{"cluster-identity": "other"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}
			c := fake.NewFakeClient()
			if tc.found != nil {
				tc.found.ObjectMeta = key
				c = fake.NewFakeClient(tc.found)
			}
			version := ""
			got := &corev1.ConfigMap{}
			for range 2 {
				version = got.ResourceVersion
				if err := Identity(t.Context(), c, "garden"); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got.Data); diff != "" || (got.Immutable != nil) != tc.fixed {
				t.Errorf("immutable is %v, want it set: %v; data (-want +got):\n%s", got.Immutable, tc.fixed, diff)
			}
			if got.ResourceVersion != version {
				t.Error("the second time wrote again")
			}
		})
	}
}

func TestUntil(t *testing.T) {
	attempts := 0
	Until(t.Context(), func(context.Context) error {
		if attempts++; attempts < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	ctx, cancel := context.WithCancel(t.Context())
	Until(ctx, func(context.Context) error {
		cancel()
		return errors.New("never")
	})
}
