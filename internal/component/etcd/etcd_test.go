package etcd

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	secrets := Secrets{CA: "ca-etcd-bundle-1", PeerCA: "ca-etcd-peer-bundle-1", Server: "etcd-server-1", Client: "etcd-client-1", PeerServer: "etcd-peer-server-1"}
	for name, v := range map[string]Values{
		"main": {
			Namespace: "shoot--a--b", Role: Main, Replicas: 3, Secrets: secrets, Spread: []string{corev1.LabelHostname, corev1.LabelTopologyZone},
			TrafficDistribution: new("PreferSameZone"),
			StorageClass:        "fast", MinimumStorage: new(resource.MustParse("25Gi")), DefragmentationSchedule: "10 22 */3 * *",
			MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			Autoscaling: &workload.Autoscaling{
				Downscale: "in-maintenance-window-only", MaintenanceWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"},
			},
			Backup: &Backup{
				Provider: "local", Container: "bucket", Prefix: "shoot--a--b--uid", SecretName: "etcd-backup", FullSnapshotSchedule: "10 22 * * *",
			},
		},
		"events":     {Namespace: "shoot--a--b", Role: Events, Replicas: 1, Secrets: secrets, Backup: &Backup{Provider: "local"}},
		"hibernated": {Namespace: "shoot--a--b", Role: Main, Replicas: 0, Secrets: secrets, Spread: []string{corev1.LabelHostname}},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Objects(t, name+".yaml", Objects(v), druidv1alpha1.AddToScheme)
		})
	}
}
