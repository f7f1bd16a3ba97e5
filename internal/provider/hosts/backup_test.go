package hosts

import (
	"maps"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/provider/hosts/hoststest"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestBackups(t *testing.T) {
	store := map[string][]string{}
	server := httptest.NewServer(&hoststest.Store{Objects: store})
	t.Cleanup(server.Close)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}, Data: map[string][]byte{
		"endpoint": []byte(server.URL), "accessKeyID": []byte("id"), "secretAccessKey": []byte("key"),
	}}
	c := fake.NewClientBuilder().WithObjects(secret, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--crazy"}}).Build()
	ref := corev1.SecretReference{Namespace: "garden", Name: "backup"}
	bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}, Spec: extensionsv1alpha1.BackupBucketSpec{Region: "r", SecretRef: ref}}
	entry := &extensionsv1alpha1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--crazy--1234"}, Spec: extensionsv1alpha1.BackupEntrySpec{Region: "r", BucketName: "bucket", SecretRef: ref},
	}
	buckets, entries := &backupBuckets{stores{c}}, backupEntries(c)
	for range 2 {
		if err := buckets.Reconcile(t.Context(), bucket, nil); err != nil {
			t.Fatal(err)
		}
		store["bucket"] = []string{"shoot--dev--crazy--1234/etcd-main/v2/a", "shoot--dev--crazy--12345/etcd-main/v2/a"} // a bucket that exists is kept
	}
	if err := entries.Reconcile(t.Context(), entry, nil); err != nil {
		t.Fatal(err)
	}
	access := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shoot--dev--crazy", Name: "etcd-backup"}, access); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(access.Data)); !slices.Equal(got, []string{"accessKeyID", "bucketName", "endpoint", "region", "secretAccessKey"}) {
		t.Errorf("the Secret of etcd has %v", got)
	}
	for range 2 {
		if err := entries.Delete(t.Context(), entry, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := store["bucket"]; !slices.Equal(got, []string{"shoot--dev--crazy--12345/etcd-main/v2/a"}) {
		t.Errorf("objects are %q", got)
	}
	for range 2 {
		if err := buckets.Delete(t.Context(), bucket, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(store) > 0 {
		t.Errorf("buckets are %v", store)
	}
	bucket.Spec.SecretRef = corev1.SecretReference{Namespace: access.Namespace, Name: access.Name}
	for name, code := range map[string]corev1beta1.ErrorCode{"other": corev1beta1.ErrorInfraUnauthenticated, "": corev1beta1.ErrorConfigurationProblem} {
		access.Data["accessKeyID"] = []byte(name)
		if err := c.Update(t.Context(), access); err != nil {
			t.Fatal(err)
		}
		if codes := errorcode.Of(buckets.Delete(t.Context(), bucket, nil)); !slices.Equal(codes, []corev1beta1.ErrorCode{code}) {
			t.Errorf("with the key %q, the codes are %v", name, codes)
		}
	}
}
