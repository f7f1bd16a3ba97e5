package extension

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	stageextension "gardener.cloud/gardener/internal/stage/extension"
)

const shoot, seed, garden = corev1beta1.ClusterTypeShoot, corev1beta1.ClusterTypeSeed, corev1beta1.ClusterTypeGarden

func resource(typ string, compatible ...corev1beta1.ClusterType) corev1beta1.ControllerResource {
	return corev1beta1.ControllerResource{Kind: "Extension", Type: typ, ClusterCompatibility: compatible}
}

func with(resources ...corev1beta1.ControllerResource) operatorv1alpha1.Extension {
	return operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: operatorv1alpha1.ExtensionSpec{Resources: resources}}
}

func enabled(r corev1beta1.ControllerResource, clusters ...corev1beta1.ClusterType) corev1beta1.ControllerResource {
	r.AutoEnable = clusters
	return r
}

func TestWanted(t *testing.T) {
	config := &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	before, after := corev1beta1.BeforeKubeAPIServer, corev1beta1.AfterKubeAPIServer
	early := resource("early", garden)
	early.Lifecycle = &corev1beta1.ControllerResourceLifecycle{Reconcile: &before, Delete: &after}
	secondary := resource("secondary", garden)
	secondary.Primary = new(false)
	for name, tc := range map[string]struct {
		specified  []operatorv1alpha1.GardenExtension
		extensions []operatorv1alpha1.Extension
		want       []stageextension.Extension
	}{
		"nothing": {extensions: []operatorv1alpha1.Extension{with(resource("a", garden))}, want: []stageextension.Extension{}},
		"in the spec, in another case, with a configuration": {
			specified:  []operatorv1alpha1.GardenExtension{{Type: "Early", ProviderConfig: config}},
			extensions: []operatorv1alpha1.Extension{with(resource("other", garden)), with(early)},
			want:       []stageextension.Extension{{Type: "early", Config: config, Reconcile: before, Delete: after, Migrate: before}},
		},
		"enabled for gardens, sorted, with the default lifecycle": {
			extensions: []operatorv1alpha1.Extension{
				with(enabled(resource("b", garden, shoot), garden), enabled(resource("c", garden, shoot), shoot)), with(enabled(resource("a", garden), garden)),
			},
			want: []stageextension.Extension{
				{Type: "a", Reconcile: after, Delete: before, Migrate: before}, {Type: "b", Reconcile: after, Delete: before, Migrate: before},
			},
		},
		"not for gardens, not primary, or of no Extension": {
			specified:  []operatorv1alpha1.GardenExtension{{Type: "a"}, {Type: "secondary"}, {Type: "unknown"}},
			extensions: []operatorv1alpha1.Extension{with(resource("a", shoot, seed), secondary)},
			want:       []stageextension.Extension{},
		},
		"another kind": {
			specified:  []operatorv1alpha1.GardenExtension{{Type: "a"}},
			extensions: []operatorv1alpha1.Extension{with(corev1beta1.ControllerResource{Kind: "DNSRecord", Type: "a"})},
			want:       []stageextension.Extension{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &operatorv1alpha1.Garden{Spec: operatorv1alpha1.GardenSpec{Extensions: tc.specified}}
			if diff := cmp.Diff(tc.want, Wanted(g, tc.extensions)); diff != "" {
				t.Errorf("Wanted() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegisteredResources(t *testing.T) {
	worker := corev1beta1.ControllerResource{Kind: "Worker", Type: "a"}
	e := with(worker, resource("only-garden", garden), enabled(resource("both", shoot, garden), garden, shoot), resource("default"))
	want := []corev1beta1.ControllerResource{worker, enabled(resource("both", shoot), shoot), resource("default")}
	if diff := cmp.Diff(want, RegisteredResources(&e)); diff != "" {
		t.Errorf("RegisteredResources() (-want +got):\n%s", diff)
	}
	if e.Spec.Resources[2].ClusterCompatibility[1] != garden {
		t.Error("the Extension was changed")
	}
	if !Registered(&e) {
		t.Error("an Extension with resources is not registered")
	}
	if e := with(resource("only-garden", garden)); Registered(&e) {
		t.Error("an Extension for the garden alone is registered")
	}
}

func TestReferences(t *testing.T) {
	chart := func(pull, ca string) *operatorv1alpha1.ExtensionHelm {
		return &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{
			PullSecretRef: &corev1.LocalObjectReference{Name: pull}, CABundleSecretRef: &corev1.LocalObjectReference{Name: ca},
		}}
	}
	named := func(kind, name string) gardencorev1.NamedResourceReference {
		return gardencorev1.NamedResourceReference{Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: name}}
	}
	full := with()
	full.Spec.Deployment = &operatorv1alpha1.Deployment{
		Extension: &operatorv1alpha1.ExtensionDeploymentSpec{DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: chart("pull", "ca")}},
		Admission: &operatorv1alpha1.AdmissionDeploymentSpec{
			RuntimeCluster: &operatorv1alpha1.DeploymentSpec{Helm: chart("pull", "ca-2")}, VirtualCluster: &operatorv1alpha1.DeploymentSpec{Helm: chart("pull-2", "ca")},
		},
		Resources: []gardencorev1.NamedResourceReference{named("ConfigMap", "pull"), named("Secret", "pull"), named("Secret", "data"), named("Pod", "p")},
	}
	partial := with()
	partial.Spec.Deployment = &operatorv1alpha1.Deployment{
		Extension: &operatorv1alpha1.ExtensionDeploymentSpec{},
		Admission: &operatorv1alpha1.AdmissionDeploymentSpec{RuntimeCluster: &operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{}}},
	}
	for name, tc := range map[string]struct {
		extension operatorv1alpha1.Extension
		want      []Reference
	}{
		"without a deployment": {extension: with()},
		"without charts":       {extension: partial},
		"all, each once": {extension: full, want: []Reference{
			{"ConfigMap", "pull"}, {"Secret", "ca"}, {"Secret", "ca-2"}, {"Secret", "data"}, {"Secret", "pull"}, {"Secret", "pull-2"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, References(&tc.extension)); diff != "" {
				t.Errorf("References() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInUse(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"exists":                  {want: true},
		"its objects are deleted": {meta: metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{operatorv1alpha1.FinalizerName}}, want: true},
		"is being deleted":        {meta: metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"gardener.cloud/reference-protection"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InUse(&operatorv1alpha1.Extension{ObjectMeta: tc.meta}); got != tc.want {
				t.Errorf("InUse() = %v, want %v", got, tc.want)
			}
		})
	}
}
