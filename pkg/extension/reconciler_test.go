package extension

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
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

// conflicts writes what it has created into the status, and then gets a conflict.
type conflicts struct{ restores }

func (*conflicts) Reconcile(_ context.Context, record *extensionsv1alpha1.DNSRecord, _ *Cluster) error {
	record.Status.Zone = new("zone-1")
	return fmt.Errorf("patch: %w", apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "a", errors.New("it has changed")))
}

// What an actuator has written into the status before a conflict is kept, like before other errors: it would not find what it has created. The conflict itself
// is retried, and not in the status.
func TestStatusIsKeptAfterAConflict(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	record := &extensionsv1alpha1.DNSRecord{
		ObjectMeta: metav1.ObjectMeta{Name: "record"}, Spec: extensionsv1alpha1.DNSRecordSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record).WithStatusSubresource(record).Build()
	r := &reconciler[*extensionsv1alpha1.DNSRecord]{
		Options: Options[*extensionsv1alpha1.DNSRecord]{
			Types: []string{"local"}, Classes: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot}, Actuator: &conflicts{},
			Timeout: time.Minute, Clock: clock.RealClock{},
		},
		kind: "DNSRecord", finalizer: "example.com/dnsrecord", client: c, reader: c,
	}
	key := client.ObjectKeyFromObject(record)
	if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || result.RequeueAfter != retryConflictAfter {
		t.Errorf("Reconcile() = %+v, %v", result, err)
	}
	if err := c.Get(t.Context(), key, record); err != nil {
		t.Fatal(err)
	}
	if record.Status.Zone == nil || *record.Status.Zone != "zone-1" {
		t.Errorf("the zone is %v", record.Status.Zone)
	}
	if last := record.Status.LastOperation; record.Status.LastError != nil || last == nil || last.State != corev1beta1.LastOperationStateProcessing {
		t.Errorf("the last operation is %+v, with error %+v", last, record.Status.LastError)
	}
}

// What is lost is reconciled without a request, but only on the seed that has it, and not before a requested operation.
func TestRepair(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		last      corev1beta1.LastOperation
		requested string
		lost      bool
		want      corev1beta1.LastOperationType
	}{
		"lost":               {last: corev1beta1.LastOperation{Type: "Create", State: "Succeeded"}, lost: true, want: "Reconcile"},
		"not lost":           {last: corev1beta1.LastOperation{Type: "Create", State: "Succeeded"}},
		"lost, and migrated": {last: corev1beta1.LastOperation{Type: "Migrate", State: "Succeeded"}, lost: true},
		"lost, and waits for its state": {
			last: corev1beta1.LastOperation{Type: "Create", State: "Succeeded"}, requested: constants.GardenerOperationWaitForState, lost: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			record := &extensionsv1alpha1.DNSRecord{
				ObjectMeta: metav1.ObjectMeta{Name: "record"}, Spec: extensionsv1alpha1.DNSRecordSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}},
			}
			record.Status.LastOperation = &tc.last
			if tc.requested != "" {
				record.Annotations = map[string]string{constants.GardenerOperation: tc.requested}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record).Build()
			r := &reconciler[*extensionsv1alpha1.DNSRecord]{Options: Options[*extensionsv1alpha1.DNSRecord]{
				Types: []string{"local"}, Classes: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot},
				Repair: func(context.Context, *extensionsv1alpha1.DNSRecord) (bool, error) { return tc.lost, nil },
			}}
			_, got, err := r.read(t.Context(), c, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(record)})
			if err != nil || got != tc.want {
				t.Errorf("read() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
