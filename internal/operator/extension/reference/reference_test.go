package reference

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/extension"
)

// referring is an Extension that refers to a Secret.
func referring(name, secret string) *operatorv1alpha1.Extension {
	e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec.Deployment = &operatorv1alpha1.Deployment{Extension: &operatorv1alpha1.ExtensionDeploymentSpec{}}
	e.Spec.Deployment.Extension.Helm = &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{
		PullSecretRef: &corev1.LocalObjectReference{Name: secret},
	}}
	return e
}

func TestReconcile(t *testing.T) {
	const finalizer = constants.FinalizerReferenceProtection
	deleted := referring("gone", "s")
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{finalizer}
	deleting := referring("going", "s")
	deleting.DeletionTimestamp, deleting.Finalizers = new(metav1.Now()), []string{operatorv1alpha1.FinalizerName}
	for name, tc := range map[string]struct {
		extensions []client.Object
		before     []string
		others     bool
		want       bool
	}{
		"no object refers to it":                               {},
		"no object refers to it any more":                      {before: []string{finalizer}},
		"an Extension without a deployment":                    {extensions: []client.Object{&operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}}},
		"an Extension refers to it":                            {extensions: []client.Object{referring("a", "other"), referring("b", "s")}, want: true},
		"an Extension whose objects are not deleted":           {extensions: []client.Object{deleting}, want: true},
		"an Extension whose objects are deleted":               {extensions: []client.Object{deleted}, before: []string{finalizer}},
		"an object of another kind refers to it":               {before: []string{finalizer}, others: true, want: true},
		"an object of another kind will get its own finalizer": {others: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", Finalizers: tc.before}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.extensions, secret)...).Build()
			r := &reconciler{runtimeCache: c, others: func(context.Context, extension.Reference) (bool, error) { return tc.others, nil }}
			if _, err := r.Reconcile(t.Context(), extension.Reference{Kind: "Secret", Name: "s"}); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(secret.Finalizers, finalizer); got != tc.want {
				t.Errorf("the Secret has finalizers %v, want the finalizer: %v", secret.Finalizers, tc.want)
			}
		})
	}
}
