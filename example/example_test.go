package example

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

func TestObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1beta1.AddToScheme, securityv1alpha1.AddToScheme, localv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
	objects, err := Objects(Project, CloudProfile, Credentials, Shoot, ShootWorkerless, ShootHA, ShootRuntime, ManagedSeed, ManagedSeedLocal, Plant, HostsCloudProfile, HostsCredentials, HostsShoot)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 21 {
		t.Errorf("there are %d objects", len(objects))
	}
	for _, object := range objects {
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		typed, _, err := strict.Decode(raw, nil, nil)
		if err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			continue
		}
		if profile, ok := typed.(*corev1beta1.CloudProfile); ok && profile.Spec.ProviderConfig != nil {
			if _, _, err := strict.Decode(profile.Spec.ProviderConfig.Raw, nil, nil); err != nil {
				t.Errorf("configuration of CloudProfile %s: %v", profile.Name, err)
			}
		}
	}
	if _, err := Objects("nothing.yaml"); err == nil {
		t.Error("there is an example of nothing")
	}
}
