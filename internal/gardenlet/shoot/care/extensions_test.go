package care

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// The conditions of these kinds become part of the Shoot's, and those of other shoots do not.
func TestConditionsOfExtensions(t *testing.T) {
	const namespace = "shoot--dev--crazy"
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	condition := corev1beta1.Condition{Type: corev1beta1.ShootSystemComponentsHealthy, Status: corev1beta1.ConditionFalse, Message: "not ready"}
	status := extensionsv1alpha1.DefaultStatus{Conditions: []corev1beta1.Condition{condition}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "a"}
	objects := []client.Object{
		&extensionsv1alpha1.ContainerRuntime{ObjectMeta: meta, Status: extensionsv1alpha1.ContainerRuntimeStatus{DefaultStatus: status}},
		&extensionsv1alpha1.ControlPlane{ObjectMeta: meta, Status: extensionsv1alpha1.ControlPlaneStatus{DefaultStatus: status}},
		&extensionsv1alpha1.Extension{ObjectMeta: meta, Status: extensionsv1alpha1.ExtensionStatus{DefaultStatus: status}},
		&extensionsv1alpha1.Infrastructure{ObjectMeta: meta, Status: extensionsv1alpha1.InfrastructureStatus{DefaultStatus: status}},
		&extensionsv1alpha1.Network{ObjectMeta: meta, Status: extensionsv1alpha1.NetworkStatus{DefaultStatus: status}},
		&extensionsv1alpha1.Worker{ObjectMeta: meta, Status: extensionsv1alpha1.WorkerStatus{DefaultStatus: status}},
		&extensionsv1alpha1.ContainerRuntime{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--other", Name: "b"}, Status: extensionsv1alpha1.ContainerRuntimeStatus{DefaultStatus: status},
		},
	}
	r := &reconciler{seedCache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
	r.Config.StaleExtensionHealthChecks = &gardenletconfigv1alpha1.StaleExtensionHealthChecks{}
	shoot, o := &corev1beta1.Shoot{}, &observed{}
	shoot.Status.TechnicalID = namespace
	if err := r.observeExtensions(t.Context(), shoot, o); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range o.extensionConditions {
		got[c.kind] = c.name + ": " + c.condition.Message
	}
	want := map[string]string{}
	for _, kind := range []string{"ContainerRuntime", "ControlPlane", "Extension", "Infrastructure", "Network", "Worker"} {
		want[kind] = "a: not ready"
	}
	if diff := cmp.Diff(want, got); diff != "" || len(o.extensionConditions) != len(want) {
		t.Errorf("%d conditions (-want +got):\n%s", len(o.extensionConditions), diff)
	}
}
