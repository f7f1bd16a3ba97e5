package backupbucket

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
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
