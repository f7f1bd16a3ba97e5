package care

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/operator/extension"
)

// A gardener-operator that starts while the virtual garden is down reports what runs beside it, such as the extension that the backup of the garden needs.
func TestVirtualGardenIsDown(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	e := &operatorv1alpha1.Extension{}
	e.Name = "x"
	e.Spec.Deployment = &operatorv1alpha1.Deployment{Extension: &operatorv1alpha1.ExtensionDeploymentSpec{
		DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{}}},
	}}
	e.Status.Conditions = []corev1beta1.Condition{
		{Type: operatorv1alpha1.ExtensionRequiredRuntime, Status: corev1beta1.ConditionTrue},
		{Type: operatorv1alpha1.ExtensionRuntimeHealthy, Status: corev1beta1.ConditionTrue},
		{Type: operatorv1alpha1.ExtensionControllerInstallationsHealthy, Status: corev1beta1.ConditionTrue},
	}
	registration, broken := managedResource("extension-registration-x", "True", ""), managedResource("extension-x-garden", "False", "")
	for _, mr := range []*resourcesv1alpha1.ManagedResource{&registration, &broken} {
		mr.Labels = map[string]string{operatorv1alpha1.LabelExtensionName: "x"}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, &registration, &broken).WithStatusSubresource(e).Build()
	down := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("connection refused")
	}})
	r := &reconciler{runtimeCache: c, virtualCache: down, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), period: time.Minute}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	result, err := r.Reconcile(t.Context(), e)
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("Reconcile() = %+v, %v; want to check again after a minute", result, err)
	}
	want := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		operatorv1alpha1.ExtensionRuntimeHealthy: corev1beta1.ConditionFalse, operatorv1alpha1.ExtensionControllerInstallationsHealthy: corev1beta1.ConditionUnknown,
	}
	got := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{}
	for typ := range want {
		for _, status := range []corev1beta1.ConditionStatus{"True", "False", "Unknown"} {
			if extension.Is(e, typ, status) {
				got[typ] = status
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// Whether the registration is applied is known without the virtual garden.
func TestWithoutInstallations(t *testing.T) {
	status := withoutInstallations(extension.Status{Conditions: []corev1beta1.Condition{
		{Type: operatorv1alpha1.ExtensionControllerInstallationsHealthy, Status: corev1beta1.ConditionFalse, Message: "registration"},
	}})
	if c := status.Conditions[0]; c.Status != corev1beta1.ConditionFalse || c.Message != "registration" {
		t.Errorf("condition is %+v", c)
	}
}
