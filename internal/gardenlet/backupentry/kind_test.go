package backupentry

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/backup"
)

// An object that a BackupEntry needs may stay missing: the status says so, and the queue retries with backoff.
func TestMissingObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &corev1beta1.BackupBucket{}
	bucket.Name = "bucket"
	bucket.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "creds"}
	bucket.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	for name, tc := range map[string]struct {
		existing []client.Object
		want     string
	}{
		"the bucket":      {want: `read BackupBucket "bucket": backupbuckets.core.gardener.cloud "bucket" not found`},
		"its credentials": {existing: []client.Object{bucket}, want: `credentials of BackupBucket "bucket": read Secret "garden/creds": secrets "creds" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			entry := &corev1beta1.BackupEntry{}
			entry.Namespace, entry.Name = "garden-dev", "entry"
			entry.Spec.SeedName, entry.Spec.BucketName = new("here"), "bucket"
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.existing, entry)...).WithStatusSubresource(entry).Build()
			seed := fake.NewClientBuilder().WithScheme(scheme).Build()
			r := &backup.Reconciler[*corev1beta1.BackupEntry, *extensionsv1alpha1.BackupEntry]{
				Kind: &kind{gardenCache: garden, gardenAPI: garden}, KindName: "BackupEntry", SeedName: "here",
				GardenCache: garden, GardenAPI: garden, SeedCache: seed, SeedAPI: seed, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
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

// Backups are deleted with the present credentials of their bucket, also when that is not ready.
func TestCredentialsOfABucketThatIsNotReady(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &corev1beta1.BackupBucket{}
	bucket.Name, bucket.Spec.CredentialsRef = "bucket", &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "creds"}
	bucket.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateError}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "creds"}, Data: map[string][]byte{"password": []byte("1")}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket, secret).Build()
	entry := &corev1beta1.BackupEntry{Spec: corev1beta1.BackupEntrySpec{BucketName: "bucket"}}
	credentials, err := (&kind{gardenCache: garden, gardenAPI: garden}).Credentials(t.Context(), entry)
	if err != nil || string(credentials.Data["password"]) != "1" {
		t.Errorf("Credentials() = %v, %v", credentials, err)
	}
}

func TestBeforeDeletion(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		annotations map[string]string
		purposes    []corev1beta1.ShootPurpose
		deleted     time.Duration // ago
		want        time.Duration // zero if the backups may be deleted
	}{
		"in the grace period":          {deleted: time.Minute, want: 59 * time.Minute},
		"after the grace period":       {deleted: time.Hour},
		"deletion forced":              {annotations: map[string]string{"backupentry.core.gardener.cloud/force-deletion": "true"}},
		"grace period of other shoots": {purposes: []corev1beta1.ShootPurpose{"production"}},
		"grace period of these shoots": {purposes: []corev1beta1.ShootPurpose{"production"}, annotations: map[string]string{"shoot.gardener.cloud/purpose": "production"}, want: time.Hour},
		"deletion not forced":          {annotations: map[string]string{"backupentry.core.gardener.cloud/force-deletion": "false"}, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kind{clock: clocktesting.NewFakePassiveClock(now), gracePeriod: time.Hour, purposes: tc.purposes}
			entry := &corev1beta1.BackupEntry{}
			entry.Annotations, entry.DeletionTimestamp = tc.annotations, new(metav1.NewTime(now.Add(-tc.deleted)))
			var got time.Duration
			var pending *backup.Pending
			if err := k.BeforeDeletion(t.Context(), entry); errors.As(err, &pending) {
				got = pending.After
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("the backups are kept for another %s, want %s", got, tc.want)
			}
		})
	}
}
