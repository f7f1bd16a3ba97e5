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
		asked        string
		last         *corev1beta1.LastOperation
		changed      bool
		deleting     bool
		released     bool
		byGeneration bool
		want         corev1beta1.LastOperationType
	}{
		"new":                                {want: "Create"},
		"new, ordered":                       {asked: "reconcile", want: "Create"},
		"new, to wait for its state":         {asked: "wait-for-state"},
		"new, to restore":                    {asked: "restore", want: "Restore"},
		"creation unfinished":                {last: last("Create", "Error"), want: "Create"},
		"done":                               {last: last("Create", "Succeeded")},
		"done, changed":                      {last: last("Create", "Succeeded"), changed: true},
		"done, changed, acts on changes":     {last: last("Create", "Succeeded"), changed: true, byGeneration: true, want: "Reconcile"},
		"done, acts on changes":              {last: last("Create", "Succeeded"), byGeneration: true},
		"done, ordered again":                {last: last("Create", "Succeeded"), asked: "reconcile", want: "Reconcile"},
		"reconciliation unfinished":          {last: last("Reconcile", "Processing"), want: "Reconcile"},
		"to migrate":                         {last: last("Reconcile", "Error"), asked: "migrate", want: "Migrate"},
		"migration unfinished":               {last: last("Migrate", "Error"), want: "Migrate"},
		"migrated":                           {last: last("Migrate", "Succeeded")},
		"migrated, ordered":                  {last: last("Migrate", "Succeeded"), asked: "reconcile"},
		"migrated, back":                     {last: last("Migrate", "Succeeded"), asked: "restore", want: "Restore"},
		"restore unfinished":                 {last: last("Restore", "Processing"), want: "Restore"},
		"restore unfinished, ordered":        {last: last("Restore", "Error"), asked: "reconcile", want: "Restore"},
		"restored, ordered":                  {last: last("Restore", "Succeeded"), asked: "reconcile", want: "Reconcile"},
		"deleting":                           {last: last("Reconcile", "Error"), deleting: true, want: "Delete"},
		"deleting, ordered":                  {last: last("Delete", "Error"), asked: "reconcile", deleting: true, want: "Delete"},
		"deleting, to migrate":               {last: last("Create", "Succeeded"), asked: "migrate", deleting: true, want: "Migrate"},
		"deleting, another holds it":         {last: last("Delete", "Processing"), deleting: true, released: true},
		"deleting before it was looked at":   {deleting: true, released: true},
		"deleting, migration was unfinished": {last: last("Migrate", "Error"), deleting: true, want: "Delete"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			obj.Status.ObservedGeneration, obj.Status.LastOperation = 2, tc.last
			if tc.changed {
				obj.Generation++
			}
			if tc.asked != "" {
				obj.Annotations = map[string]string{"gardener.cloud/operation": tc.asked}
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
