package system

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// Former credentials can be deleted when the Seed has others. A gardenlet may not write to them when its BackupBucket refers to the others.
func TestFormerCredentialsOfBackupsAreReleased(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	ref := func(kind, name string) *corev1.ObjectReference {
		apiVersion := "v1"
		if kind == "WorkloadIdentity" {
			apiVersion = "security.gardener.cloud/v1alpha1"
		}
		return &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "garden", Name: name}
	}
	bucketOf := func(name string, ref *corev1.ObjectReference) *corev1beta1.BackupBucket {
		b := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.CredentialsRef, b.Spec.SeedName = ref, new("s")
		return b
	}
	for name, tc := range map[string]struct {
		former, now *corev1.ObjectReference
		missing     bool // the former credentials
		other       bool // another BackupBucket of the seed has the former credentials
		want        bool // they keep the finalizer
	}{
		"another Secret":                {former: ref("Secret", "a"), now: ref("Secret", "b")},
		"a WorkloadIdentity":            {former: ref("Secret", "a"), now: ref("WorkloadIdentity", "a")},
		"another WorkloadIdentity":      {former: ref("WorkloadIdentity", "a"), now: ref("WorkloadIdentity", "b")},
		"that another BackupBucket has": {former: ref("Secret", "a"), now: ref("Secret", "b"), other: true, want: true},
		"that do not exist any more":    {former: ref("Secret", "a"), now: ref("Secret", "b"), missing: true},
		"the same":                      {former: ref("Secret", "a"), now: ref("Secret", "a"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "garden", Name: tc.former.Name, Finalizers: []string{"gardener.cloud/gardener"}}
			var former client.Object = &corev1.Secret{ObjectMeta: meta}
			if tc.former.Kind == "WorkloadIdentity" {
				former = &securityv1alpha1.WorkloadIdentity{ObjectMeta: meta}
			}
			bucket := bucketOf("uid", tc.former)
			objects := []client.Object{bucket}
			if !tc.missing {
				objects = append(objects, former)
			}
			if tc.other {
				objects = append(objects, bucketOf("other", tc.former))
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			authorize := func(ctx context.Context, object client.Object) error {
				if _, ok := object.(*metav1.PartialObjectMetadata); !ok {
					return nil
				}
				current := &corev1beta1.BackupBucket{}
				if err := api.Get(ctx, client.ObjectKey{Name: "uid"}, current); err != nil || *current.Spec.CredentialsRef == *tc.former {
					return err
				}
				return apierrors.NewForbidden(schema.GroupResource{}, tc.former.Name, errors.New("no relationship"))
			}
			garden := interceptor.NewClient(api, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					return errors.Join(authorize(ctx, object), c.Get(ctx, key, object, options...))
				},
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if err := authorize(ctx, object); err != nil {
						return err
					}
					return c.Patch(ctx, object, patch, options...)
				},
			})
			seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "uid"}, Spec: corev1beta1.SeedSpec{Backup: &corev1beta1.Backup{CredentialsRef: tc.now}}}
			r := &reconciler{Values: Values{GardenAPI: garden}, gardenCache: garden}
			if err := r.newRun(seed).createBackupBucket(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(bucket), bucket); err != nil || *bucket.Spec.CredentialsRef != *tc.now {
				t.Errorf("the BackupBucket has credentials %v: %v", bucket.Spec.CredentialsRef, err)
			}
			if tc.missing {
				return
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(former), former); err != nil {
				t.Fatal(err)
			}
			if kept := len(former.GetFinalizers()) > 0; kept != tc.want {
				t.Errorf("the former credentials have finalizers %v", former.GetFinalizers())
			}
		})
	}
}
