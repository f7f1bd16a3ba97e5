package gardenlet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/cleanup"
)

// The cleanup of a shoot that is deleted ends although no controller of the user runs any more: an APIService has no server, custom
// resources and snapshots have finalizers. What Gardener has installed stays.
func (g *garden) testCleanup(t *testing.T) {
	shootClient, err := client.NewWithWatch(g.AddCluster(t), client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) client.Object {
		t.Helper()
		if err := shootClient.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
		return object
	}
	thing := definition("example.com", "Thing", nil)
	snapshot := definition("snapshot.storage.k8s.io", "VolumeSnapshot", map[string]string{"shoot.gardener.cloud/no-cleanup": "true"})
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.users.example.com"}, Spec: apiregistrationv1.APIServiceSpec{
		Group: "users.example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 10, InsecureSkipTLSVerify: true,
		Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "none"},
	}}
	create(api)
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{thing, snapshot} {
		create(crd)
		if err := stage.AwaitOne(t.Context(), shootClient, "", crd.Name, &apiextensionsv1.CustomResourceDefinitionList{}, func(c *apiextensionsv1.CustomResourceDefinition) error {
			return kube.Healthy(c)
		}); err != nil {
			t.Fatal(err)
		}
	}
	create(held("example.com/v1", "Thing"))
	volumeSnapshot := create(held("snapshot.storage.k8s.io/v1", "VolumeSnapshot"))
	claim := create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "held", Finalizers: []string{"example.com/x"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	at := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds":        "2",
		"shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds": "2",
	}}}
	in := cleanup.Inputs{Run: &stage.Run{Target: stage.NewConnectedTarget(shootClient, nil), Clock: clock.RealClock{}}, Periods: cleanup.PeriodsOf(at)}
	for _, task := range cleanup.Tasks(in) {
		if err := task.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", task.ID, err)
		}
	}
	for object, deleted := range map[client.Object]bool{thing: true, api: true, snapshot: false, volumeSnapshot: true, claim: true} {
		if err := shootClient.Get(t.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != deleted {
			t.Errorf("read %T %q: error %v, want it to be deleted: %t", object, object.GetName(), err, deleted)
		}
	}
}

// definition returns a CustomResourceDefinition without a schema.
func definition(group, kind string, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + group, Labels: labels, Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// held returns a resource with a finalizer.
func held(apiVersion, kind string) client.Object {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(metav1.NamespaceDefault)
	object.SetName("held")
	object.SetFinalizers([]string{"example.com/x"})
	return object
}
