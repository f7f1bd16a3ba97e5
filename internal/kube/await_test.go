package kube

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestAwaitSaysWhyItCannotList is about a kind that cannot be listed, which is retried.
func TestAwaitSaysWhyItCannotList(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	forbidden, late := errors.New("forbidden"), errors.New("too late")
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			cancel(late)
			return forbidden
		},
	}).Build()
	err := Await(ctx, c, &corev1.PodList{}, func([]*corev1.Pod) error { return nil }, nil)
	if !errors.Is(err, late) || !strings.Contains(err.Error(), forbidden.Error()) {
		t.Errorf("got %v, want one with %q and %q", err, forbidden, late)
	}
}
