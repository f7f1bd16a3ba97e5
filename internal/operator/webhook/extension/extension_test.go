package extension

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Without its resource, the extension would be uninstalled, and nothing could delete the object that it is responsible for.
func TestRemovedResource(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{extensionsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	extension := func(name string, resources ...string) *operatorv1alpha1.Extension {
		e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
		for _, resource := range resources {
			kind, typ, _ := strings.Cut(resource, "/")
			e.Spec.Resources = append(e.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: typ})
		}
		return e
	}
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: operatorv1alpha1.GardenSpec{
		DNS: &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{{Name: "a", Type: "zone"}}},
	}}
	bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	bucket.Spec.Type, bucket.Spec.Class = "store", new(extensionsv1alpha1.ExtensionClassGarden)
	ofSeed := bucket.DeepCopy()
	ofSeed.Spec.Class = nil
	before := extension("x", "Worker/w", "BackupBucket/store", "DNSRecord/zone")
	for name, tc := range map[string]struct {
		objects []client.Object
		after   *operatorv1alpha1.Extension
		want    []string // the resources in the refusal; empty if it is allowed
	}{
		"the Garden requires it":         {objects: []client.Object{garden}, after: extension("x", "Worker/w", "BackupBucket/store"), want: []string{"DNSRecord/zone"}},
		"an object requires it":          {objects: []client.Object{bucket}, after: extension("x"), want: []string{"BackupBucket/store"}},
		"both":                           {objects: []client.Object{garden, bucket}, after: extension("x"), want: []string{"BackupBucket/store", "DNSRecord/zone"}},
		"nothing requires it":            {after: extension("x")},
		"an object of a seed":            {objects: []client.Object{ofSeed}, after: extension("x")},
		"another Extension has it":       {objects: []client.Object{bucket, extension("y", "BackupBucket/store")}, after: extension("x")},
		"another resource":               {objects: []client.Object{garden, bucket}, after: extension("x", "BackupBucket/store", "DNSRecord/zone")},
		"it is spelt in another case":    {objects: []client.Object{bucket}, after: extension("x", "BackupBucket/Store")},
		"it is being deleted, finalizer": {objects: []client.Object{bucket}, after: deleted(extension("x"))},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{before.DeepCopy()}
			for _, object := range tc.objects {
				objects = append(objects, object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy has its original's type
			}
			h := &Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Decoder: admission.NewDecoder(scheme)}
			response := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Name: "x", Object: encode(t, tc.after), OldObject: encode(t, before),
			}})
			if response.Allowed != (len(tc.want) == 0) {
				t.Errorf("allowed %t: %v", response.Allowed, response.Result)
			}
			for _, resource := range tc.want {
				if message := response.Result.Message; !strings.Contains(message, "spec.resources: Forbidden: "+resource) {
					t.Errorf("message is %q, want one with %s", message, resource)
				}
			}
		})
	}
}

func deleted(e *operatorv1alpha1.Extension) *operatorv1alpha1.Extension {
	e.DeletionTimestamp = new(metav1.Now())
	return e
}

func encode(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}
