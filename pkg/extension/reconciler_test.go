package extension

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// restores counts how often something is restored.
type restores int

func (r *restores) Reconcile(context.Context, *extensionsv1alpha1.DNSRecord, *Cluster) error {
	return nil
}

func (r *restores) Delete(context.Context, *extensionsv1alpha1.DNSRecord, *Cluster) error { return nil }

func (r *restores) Restore(context.Context, *extensionsv1alpha1.DNSRecord, *Cluster) error {
	*r++
	return nil
}

// An object that has just been restored is not restored once more, because the cache still has it as it was during the operation.
func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	record := func(state corev1beta1.LastOperationState, annotations map[string]string) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(&extensionsv1alpha1.DNSRecord{
			ObjectMeta: metav1.ObjectMeta{Name: "record", Annotations: annotations},
			Spec:       extensionsv1alpha1.DNSRecordSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}},
			Status: extensionsv1alpha1.DNSRecordStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{
				LastOperation: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeRestore, State: state, Progress: progressBegun, Description: "DNSRecord is being restored."},
			}},
		}).Build()
	}
	stale := record(corev1beta1.LastOperationStateProcessing, map[string]string{constants.GardenerOperation: constants.GardenerOperationRestore})
	actuator := new(restores)
	r := &reconciler[*extensionsv1alpha1.DNSRecord]{
		Options: Options[*extensionsv1alpha1.DNSRecord]{
			Types: []string{"local"}, Classes: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot}, Actuator: actuator,
		},
		kind: "DNSRecord", client: stale, reader: record(corev1beta1.LastOperationStateSucceeded, nil),
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "record"}}); err != nil || *actuator > 0 {
		t.Errorf("it is restored %d times more (%v)", *actuator, err)
	}
}
