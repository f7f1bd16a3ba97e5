package reference

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// A DNS provider is removed from the Garden before its DNSRecords are deleted, which the extension cannot do without the credentials.
func TestSecretStaysWhileItIsNeeded(t *testing.T) {
	garden, shoot := extensionsv1alpha1.ExtensionClassGarden, extensionsv1alpha1.ExtensionClassShoot
	spec := func(class extensionsv1alpha1.ExtensionClass) extensionsv1alpha1.DefaultSpec {
		return extensionsv1alpha1.DefaultSpec{Type: "local", Class: &class}
	}
	meta := metav1.ObjectMeta{Namespace: "garden", Name: "a"}
	named := corev1.SecretReference{Namespace: "garden", Name: "s"}
	record := func(class extensionsv1alpha1.ExtensionClass, of corev1.SecretReference) client.Object {
		return &extensionsv1alpha1.DNSRecord{ObjectMeta: meta, Spec: extensionsv1alpha1.DNSRecordSpec{DefaultSpec: spec(class), SecretRef: of}}
	}
	global := metav1.ObjectMeta{Name: "a"}
	for name, tc := range map[string]struct {
		objects []client.Object
		stays   bool
	}{
		"nothing":                       {},
		"a DNSRecord":                   {objects: []client.Object{record(garden, named)}, stays: true},
		"a DNSRecord of another Secret": {objects: []client.Object{record(garden, corev1.SecretReference{Namespace: "garden", Name: "other"})}},
		"a DNSRecord of a shoot":        {objects: []client.Object{record(shoot, named)}},
		"a Secret elsewhere":            {objects: []client.Object{record(garden, corev1.SecretReference{Namespace: "shoot", Name: "s"})}},
		"a BackupBucket": {stays: true, objects: []client.Object{&extensionsv1alpha1.BackupBucket{
			ObjectMeta: global, Spec: extensionsv1alpha1.BackupBucketSpec{DefaultSpec: spec(garden), SecretRef: named},
		}}},
		"a BackupEntry": {stays: true, objects: []client.Object{&extensionsv1alpha1.BackupEntry{
			ObjectMeta: global, Spec: extensionsv1alpha1.BackupEntrySpec{DefaultSpec: spec(garden), SecretRef: named},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", Finalizers: []string{constants.FinalizerReferenceProtection}}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.objects, object)...).Build()
			ref := Ref{secret, "s"}
			if _, err := (&reconciler{runtimeCache: c, runtimeAPI: c}).Reconcile(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if guarded(object) != tc.stays {
				t.Errorf("it has the finalizer: %t, want %t", guarded(object), tc.stays)
			}
			if referenced, err := Referenced(t.Context(), c, c, ref); err != nil || referenced != tc.stays {
				t.Errorf("Referenced() = %t, %v, want %t", referenced, err, tc.stays)
			}
		})
	}
}
