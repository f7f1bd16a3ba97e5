package values

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/internal/stage/controlplane"
	"gardener.cloud/gardener/internal/stage/etcd"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// The stages deploy the control plane of a virtual garden as they do that of a shoot.
func TestStages(t *testing.T) {
	clusters := stagetest.New(t)
	s := source(t, small(), clusters.Seed)
	run := clusters.Run()
	run.Of, run.Namespace, run.Name = of, namespace, s.Garden.Name
	ofEtcd := etcd.Tasks(etcd.Inputs{Run: run, Values: s.Etcd, Replicas: s.Members(), Ready: etcd.Healthy})
	ofAPIServer := apiserver.Tasks(apiserver.Inputs{
		Run: run, Credentials: s.Credentials, Replicas: s.APIServerReplicas(),
		Values: func(ctx context.Context, replicas int32) (kubeapiserver.Values, error) {
			return s.KubeAPIServer(replicas, Files{})
		},
		Encryption: apiserver.Encryption{Desired: s.Encryption, Mark: s.EncryptionMark},
	})
	ofControlPlane := controlplane.Tasks(controlplane.Inputs{
		Run: run, Credentials: s.Credentials, Replicas: s.Replicas(), ResourceManager: s.ResourceManager, KubeControllerManager: s.KubeControllerManager,
		Resources: s.Resources, Kubeconfigs: s.Kubeconfigs(), Rotation: controlplane.Rotation{CA: s.ReplacesCAs()},
	})
	for _, task := range append(append(ofEtcd, ofAPIServer...), ofControlPlane...) {
		if task.ID == "tokens" { // a fake cluster issues none
			continue
		}
		if err := task.Run(t.Context()); err != nil {
			t.Fatalf("task %q: %v", task.ID, err)
		}
	}
	for name, object := range map[string]client.Object{
		"virtual-garden-etcd-main": &druidv1alpha1.Etcd{}, "virtual-garden-etcd-events": &druidv1alpha1.Etcd{},
		"virtual-garden-kube-apiserver": &appsv1.Deployment{}, "virtual-garden-kube-controller-manager": &appsv1.Deployment{},
		"virtual-garden-gardener-resource-manager": &appsv1.Deployment{}, "gardener": &corev1.Secret{}, "gardener-internal": &corev1.Secret{},
		"shoot-access-kube-controller-manager": &corev1.Secret{}, "shoot-access-gardener-resource-manager": &corev1.Secret{},
		"shoot-core-gardeneraccess": &resourcesv1alpha1.ManagedResource{}, "shoot-core-kube-controller-manager": &resourcesv1alpha1.ManagedResource{},
		"shoot-core-gardener-resource-manager": &resourcesv1alpha1.ManagedResource{},
	} {
		if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: name}, object); err != nil {
			t.Error(err)
		}
	}
	system := &resourcesv1alpha1.ManagedResource{}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "shoot-core-system"}, system); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedResource of shoots: %v", err)
	}
}
