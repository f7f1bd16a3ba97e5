package backupbucket

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// The finalizer of the credentials is removed with the last BackupBucket that uses them. If they cannot be read, the deletion is retried:
// without the BackupBucket, nothing would remove the finalizer.
func TestAfterDeletion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	newBucket := func(name string) *corev1beta1.BackupBucket {
		b := &corev1beta1.BackupBucket{}
		b.Name, b.Spec.CredentialsRef = name, &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}
		return b
	}
	unavailable := errors.New("connection refused")
	for name, tc := range map[string]struct {
		missing bool // the Secret
		read    error
		other   bool // another BackupBucket has the same credentials
		err     error
		want    bool // the finalizer is still set
	}{
		"the last one":                   {},
		"another one uses them":          {other: true, want: true},
		"the credentials are missing":    {missing: true},
		"the credentials cannot be read": {read: unavailable, err: unavailable, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := newBucket("a")
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup", Finalizers: []string{"gardener.cloud/gardener"}}}
			objects := []client.Object{bucket}
			if !tc.missing {
				objects = append(objects, secret)
			}
			if tc.other {
				objects = append(objects, newBucket("b"))
			}
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			k := &kind{gardenCache: garden, gardenAPI: interceptor.NewClient(garden, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if tc.read != nil {
						return tc.read
					}
					return c.Get(ctx, key, object, options...)
				},
			})}
			if err := k.AfterDeletion(t.Context(), bucket); !errors.Is(err, tc.err) {
				t.Errorf("AfterDeletion() = %v, want %v", err, tc.err)
			}
			if tc.missing {
				return
			}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if got := len(secret.Finalizers) > 0; got != tc.want {
				t.Errorf("finalizers are %v", secret.Finalizers)
			}
		})
	}
}

// Extensions put the Secret that they generate where the annotation says.
func TestPrepare(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	bucket.Spec.Provider = corev1beta1.BackupBucketProvider{Type: "local", Region: "r"}
	bucket.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket, secret).Build()
	_, setSpec, err := (&kind{gardenCache: garden, gardenAPI: garden}).Prepare(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	ref := corev1.SecretReference{Namespace: "garden", Name: "bucket-a"}
	got, want := &extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupBucket{}
	setSpec(got, ref)
	want.Annotations = map[string]string{"backupbucket.extensions.gardener.cloud/generated-secret-namespace": "garden"}
	want.Spec = extensionsv1alpha1.BackupBucketSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "r", SecretRef: ref}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("BackupBucket (-want +got):\n%s", diff)
	}
}

// A gardenlet may only read and change the generated Secret while the status of its BackupBucket names it.
func TestStatusNamesGeneratedSecretFirst(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket).WithStatusSubresource(bucket).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*corev1.Secret); ok {
				current := &corev1beta1.BackupBucket{}
				if err := c.Get(ctx, client.ObjectKey{Name: "a"}, current); err != nil {
					return err
				}
				if ref := current.Status.GeneratedSecretRef; ref == nil || ref.Name != key.Name {
					return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errors.New("no relationship"))
				}
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "generated"}, Data: map[string][]byte{"password": []byte("1")}}
	k := &kind{gardenCache: garden, gardenAPI: garden, seedCache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(generated).Build()}
	if err := garden.Get(t.Context(), client.ObjectKeyFromObject(bucket), bucket); err != nil {
		t.Fatal(err)
	}
	bucket.Status.ObservedGeneration = 7 // it is written with the rest of the status
	resource := &extensionsv1alpha1.BackupBucket{Status: extensionsv1alpha1.BackupBucketStatus{
		GeneratedSecretRef: &corev1.SecretReference{Namespace: "garden", Name: "generated"},
	}}
	if err := k.Applied(t.Context(), bucket, resource, true); err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Secret{}
	if err := garden.Get(t.Context(), client.ObjectKeyFromObject(generatedSecret(bucket)), copied); err != nil || string(copied.Data["password"]) != "1" {
		t.Errorf("the copy has the data %v (%v)", slices.Collect(maps.Keys(copied.Data)), err)
	}
	if bucket.Status.ObservedGeneration != 7 || bucket.Status.GeneratedSecretRef == nil {
		t.Errorf("status is %+v", bucket.Status)
	}
}
