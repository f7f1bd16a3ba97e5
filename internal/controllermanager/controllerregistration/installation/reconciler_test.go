package installation

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// An extension moves from one registration to another. Without the new installation, the old one is still needed.
func TestAnInstallationIsKeptUntilItsReplacementExists(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	installation := func(name string) *corev1beta1.ControllerInstallation {
		return &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
	}
	failure := errors.New("by a test")
	for name, tc := range map[string]struct {
		failing string
		kept    bool
	}{
		"the new installation is not created": {failing: "new", kept: true},
		"another one is not updated":          {failing: "other", kept: true},
		"all are written":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(installation("old"), installation("other")).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
					if obj.GetName() == tc.failing {
						return failure
					}
					return c.Create(ctx, obj, options...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
					if obj.GetName() == tc.failing {
						return failure
					}
					return c.Patch(ctx, obj, patch, options...)
				},
			}).Build()
			err := (&reader{garden}).apply(t.Context(), plan{
				create: []*corev1beta1.ControllerInstallation{installation("new")},
				update: [][2]*corev1beta1.ControllerInstallation{{installation("other"), installation("other")}},
				remove: []*corev1beta1.ControllerInstallation{installation("old")},
			})
			if errors.Is(err, failure) != (tc.failing != "") {
				t.Errorf("apply() = %v", err)
			}
			err = garden.Get(t.Context(), client.ObjectKey{Name: "old"}, &corev1beta1.ControllerInstallation{})
			if kept := err == nil; kept != tc.kept {
				t.Errorf("the old installation is kept: %t (%v), want %t", kept, err, tc.kept)
			}
		})
	}
}
