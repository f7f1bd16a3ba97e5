package installation

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "i"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ci).WithStatusSubresource(ci).Build()
	behind.Case[*corev1beta1.ControllerInstallation]{
		API: api, Object: ci,
		Status: func(ci *corev1beta1.ControllerInstallation) any { return ci.Status.Conditions[0].Status },
		Other: func(ci *corev1beta1.ControllerInstallation) {
			ci.Status.Conditions[0].Status = corev1beta1.ConditionFalse
		},
		Pass: func(cache client.WithWatch) {
			r := &reconciler{Values: Values{GardenAPI: api, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, gardenCache: cache}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ci)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// An extension that is needed again soon has a ControllerInstallation of the same name. What it applies to a namespace that is being deleted is lost.
func TestNamespaceThatIsBeingDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	const hold = "example.com/hold" // keeps the namespace, in place of kube-controller-manager
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "i", Finalizers: []string{constants.FinalizerControllerInstallation}}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension-i", Finalizers: []string{hold}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ci, ns).Build()
	r := &reconciler{Values: Values{GardenAPI: c, SeedName: "s", GardenConfig: &rest.Config{}}, gardenCache: c, seedCache: c}
	deleted := func() bool {
		t.Helper()
		for range 2 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ci)}); err != nil {
				t.Fatal(err)
			}
		}
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(ci), ci))
	}
	if err := c.Delete(t.Context(), ci); err != nil {
		t.Fatal(err)
	}
	if deleted() {
		t.Error("the ControllerInstallation is deleted before its namespace")
	}
	if err := r.install(t.Context(), ci, &gardencorev1.ControllerDeployment{}, nil, nil); err == nil {
		t.Error("there is no error, which would cause a retry")
	}
	if mr := new(resourcesv1alpha1.ManagedResource); !apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "i"}, mr)) {
		t.Error("objects are applied to a namespace that is being deleted")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
		t.Fatal(err)
	}
	ns.Finalizers = nil
	if err := c.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if !deleted() {
		t.Error("the ControllerInstallation is not deleted after its namespace")
	}
}

// A chart that is not valid is not tried again, unless the condition does not say so yet.
func TestStatusIsRetried(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, status := range map[string]error{"written": nil, "not written": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "i"}}
			ci.Spec.DeploymentRef = &corev1.ObjectReference{Name: "d"}
			deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Helm: &gardencorev1.HelmControllerDeployment{}} // without a chart
			seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ci, deployment, seed).WithStatusSubresource(ci).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if status != nil {
						return status
					}
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				},
			}).Build()
			r := &reconciler{
				Values:      Values{GardenAPI: c, SeedName: "s", SeedVersion: seedVersion{}, GardenConfig: &rest.Config{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))},
				gardenCache: c,
			}
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ci)})
			if terminal := errors.Is(err, reconcile.TerminalError(nil)); !errors.Is(err, chart.ErrInvalid) || terminal != (status == nil) {
				t.Errorf("the error is %v, terminal: %v", err, terminal)
			}
		})
	}
}
