package extension

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestDecide(t *testing.T) {
	const finalizer = "extensions.gardener.cloud/network"
	last := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: typ, State: state}
	}
	for name, tc := range map[string]struct {
		requested    string
		last         *corev1beta1.LastOperation
		changed      bool
		deleting     bool
		released     bool
		byGeneration bool
		want         corev1beta1.LastOperationType
	}{
		"new":                                {want: "Create"},
		"new, reconcile":                     {requested: "reconcile", want: "Create"},
		"new, to wait for its state":         {requested: "wait-for-state"},
		"new, to restore":                    {requested: "restore", want: "Restore"},
		"creation unfinished":                {last: last("Create", "Error"), want: "Create"},
		"done":                               {last: last("Create", "Succeeded")},
		"done, changed":                      {last: last("Create", "Succeeded"), changed: true},
		"done, changed, by generation":       {last: last("Create", "Succeeded"), changed: true, byGeneration: true, want: "Reconcile"},
		"done, by generation":                {last: last("Create", "Succeeded"), byGeneration: true},
		"done, reconcile":                    {last: last("Create", "Succeeded"), requested: "reconcile", want: "Reconcile"},
		"reconciliation unfinished":          {last: last("Reconcile", "Processing"), want: "Reconcile"},
		"to migrate":                         {last: last("Reconcile", "Error"), requested: "migrate", want: "Migrate"},
		"migration unfinished":               {last: last("Migrate", "Error"), want: "Migrate"},
		"migrated":                           {last: last("Migrate", "Succeeded")},
		"migrated, reconcile":                {last: last("Migrate", "Succeeded"), requested: "reconcile"},
		"migrated, to restore":               {last: last("Migrate", "Succeeded"), requested: "restore", want: "Restore"},
		"restore unfinished":                 {last: last("Restore", "Processing"), want: "Restore"},
		"restore unfinished, reconcile":      {last: last("Restore", "Error"), requested: "reconcile", want: "Restore"},
		"restored, reconcile":                {last: last("Restore", "Succeeded"), requested: "reconcile", want: "Reconcile"},
		"deleting":                           {last: last("Reconcile", "Error"), deleting: true, want: "Delete"},
		"deleting, reconcile":                {last: last("Delete", "Error"), requested: "reconcile", deleting: true, want: "Delete"},
		"deleting, to migrate":               {last: last("Create", "Succeeded"), requested: "migrate", deleting: true, want: "Migrate"},
		"deleting, another finalizer":        {last: last("Delete", "Processing"), deleting: true, released: true},
		"deleting before it was reconciled":  {deleting: true, released: true},
		"deleting, migration was unfinished": {last: last("Migrate", "Error"), deleting: true, want: "Delete"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			obj.Status.ObservedGeneration, obj.Status.LastOperation = 2, tc.last
			if tc.changed {
				obj.Generation++
			}
			if tc.requested != "" {
				obj.Annotations = map[string]string{"gardener.cloud/operation": tc.requested}
			}
			if tc.deleting {
				obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			if !tc.released {
				obj.Finalizers = []string{finalizer}
			}
			if got := decide(obj, finalizer, tc.byGeneration); got != tc.want {
				t.Errorf("decide() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFinalizer(t *testing.T) {
	for kind, want := range map[string]string{
		"Infrastructure": extensionsv1alpha1.InfrastructureFinalizer, "BackupBucket": extensionsv1alpha1.BackupBucketFinalizer,
		"OperatingSystemConfig": extensionsv1alpha1.OperatingSystemConfigFinalizer, "DNSRecord": extensionsv1alpha1.DNSRecordFinalizer,
		"Extension": "extensions.gardener.cloud/shoot-something",
	} {
		if got := finalizer(kind, "shoot-something"); got != want {
			t.Errorf("finalizer(%s) = %s, want %s", kind, got, want)
		}
	}
}
