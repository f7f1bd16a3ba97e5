package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/generic"
)

func data(t *testing.T, c client.Client, namespace, name string) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range secret.Data {
		out[key] = string(value)
	}
	return out
}

func TestBackups(t *testing.T) {
	directory := t.TempDir()
	c := fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--crazy"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry"}, Data: map[string][]byte{"hostPath": []byte("/node")}},
	).Build()
	buckets, entries := &backupBuckets{c, directory, "/node", "extension"}, &generic.BackupEntry{Client: c, Owner: Name, DeleteBackups: deleteBackups(directory)}
	bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--crazy--00000000-0000-0000-0000-000000000001"}}
	entry.Spec.BucketName, entry.Spec.SecretRef = "b", corev1.SecretReference{Namespace: "garden", Name: "entry"}
	other := entry.DeepCopy()
	other.Name = "shoot--dev--crazy--00000000-0000-0000-0000-000000000002"
	for range 2 { // the second pass changes nothing
		if err := buckets.Reconcile(t.Context(), bucket, nil); err != nil {
			t.Fatal(err)
		}
		if err := entries.Reconcile(t.Context(), entry, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(&corev1.SecretReference{Namespace: "extension", Name: "generated-bucket-b"}, bucket.Status.GeneratedSecretRef); diff != "" {
		t.Errorf("generated Secret (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"hostPath": "/node"}, data(t, c, "extension", "generated-bucket-b")); diff != "" {
		t.Errorf("generated Secret (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"hostPath": "/node", "bucketName": "b"}, data(t, c, "shoot--dev--crazy", "etcd-backup")); diff != "" {
		t.Errorf("access (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(directory, "b")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the bucket is %v, %v", info, err)
	}
	for _, e := range []*extensionsv1alpha1.BackupEntry{entry, other} {
		if err := os.MkdirAll(filepath.Join(directory, "b", e.Name, "etcd-main", "v2"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := entries.Delete(t.Context(), entry, nil); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(directory, "b"))
	if err != nil || len(left) != 1 || left[0].Name() != other.Name {
		t.Errorf("left are %v, %v", left, err)
	}
	for range 2 {
		if err := buckets.Delete(t.Context(), bucket, nil); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(directory); err != nil || len(left) > 0 || data(t, c, "extension", "generated-bucket-b") != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestBackupsStayInside(t *testing.T) {
	entries := &generic.BackupEntry{Client: fake.NewClientBuilder().Build(), DeleteBackups: deleteBackups(t.TempDir())}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc"} {
		entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--a--b--uid"}}
		entry.Spec.BucketName = name
		if err := entries.Delete(t.Context(), entry, nil); err == nil {
			t.Errorf("bucket %q is accepted", name)
		}
	}
	// The control plane is not in this seed.
	entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--a--b--uid"}}
	if err := entries.Reconcile(t.Context(), entry, nil); err != nil {
		t.Error(err)
	}
}

// The entry of the former seed has its own Secret, and its backups are those without the prefix in its name. Migrating keeps them.
func TestBackupsOfTheFormerSeed(t *testing.T) {
	directory := t.TempDir()
	c := fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--crazy"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry"}, Data: map[string][]byte{"hostPath": []byte("/node")}},
	).Build()
	entries := &generic.BackupEntry{Client: c, Owner: Name, DeleteBackups: deleteBackups(directory)}
	entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--crazy--1"}}
	entry.Spec.BucketName, entry.Spec.SecretRef = "new", corev1.SecretReference{Namespace: "garden", Name: "entry"}
	source := entry.DeepCopy()
	source.Name, source.Spec.BucketName = "source-"+entry.Name, "old"
	for _, e := range []*extensionsv1alpha1.BackupEntry{entry, source} {
		if err := os.MkdirAll(filepath.Join(directory, e.Spec.BucketName, entry.Name, "etcd-main"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := entries.Reconcile(t.Context(), e, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, bucket := range map[string]string{"etcd-backup": "new", "source-etcd-backup": "old"} {
		if diff := cmp.Diff(map[string]string{"hostPath": "/node", "bucketName": bucket}, data(t, c, "shoot--dev--crazy", name)); diff != "" {
			t.Errorf("Secret %s (-want +got):\n%s", name, diff)
		}
	}
	exists := func(bucket string) bool {
		_, err := os.Stat(filepath.Join(directory, bucket, entry.Name))
		return err == nil
	}
	if err := entries.Migrate(t.Context(), entry, nil); err != nil || !exists("new") || !exists("old") {
		t.Errorf("backups are gone after the migration (%v)", err)
	}
	if err := entries.Delete(t.Context(), source, nil); err != nil || !exists("new") || exists("old") {
		t.Errorf("the backups of the former seed: %v", err)
	}
}
