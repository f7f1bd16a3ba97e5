package backupentry

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// What an entry needs may stay away: its status says so, and it is tried again later and later.
func TestMissing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &corev1beta1.BackupBucket{}
	bucket.Name = "bucket"
	bucket.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "creds"}
	bucket.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	for name, tc := range map[string]struct {
		there []client.Object
		want  string
	}{
		"the bucket":      {want: `read BackupBucket "bucket": backupbuckets.core.gardener.cloud "bucket" not found`},
		"its credentials": {there: []client.Object{bucket}, want: `read credentials of BackupBucket "bucket": secrets "creds" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			entry := &corev1beta1.BackupEntry{}
			entry.Namespace, entry.Name = "garden-dev", "entry"
			entry.Spec.SeedName, entry.Spec.BucketName = new("here"), "bucket"
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.there, entry)...).WithStatusSubresource(entry).Build()
			r := &reconciler{
				Values:       Values{SeedName: "here", Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))},
				gardenClient: garden, seedClient: fake.NewClientBuilder().WithScheme(scheme).Build(),
			}
			if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(entry)}); err == nil {
				t.Errorf("Reconcile() is %v without an error", result)
			}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(entry), entry); err != nil {
				t.Fatal(err)
			}
			if last := entry.Status.LastError; last == nil || last.Description != tc.want {
				t.Errorf("last error is %+v, want %q", last, tc.want)
			}
		})
	}
}
