package etcd

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// eventsEtcd is an etcd for events, as small as it gets.
func eventsEtcd() *druidv1alpha1.Etcd {
	return &druidv1alpha1.Etcd{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy", Name: "etcd-events", UID: "1"},
		Spec:       druidv1alpha1.EtcdSpec{Replicas: 1, Labels: map[string]string{"role": "events"}},
	}
}

// main is the main etcd of a cluster that survives the loss of a zone, with everything set.
func mainEtcd() *druidv1alpha1.Etcd {
	secret := func(name string) corev1.SecretReference { return corev1.SecretReference{Name: name} }
	tls := func(prefix string) druidv1alpha1.TLSConfig {
		return druidv1alpha1.TLSConfig{
			TLSCASecretRef:     druidv1alpha1.SecretReference{SecretReference: secret(prefix + "-ca"), DataKey: new("bundle.crt")},
			ServerTLSSecretRef: secret(prefix + "-server"), ClientTLSSecretRef: new(secret(prefix + "-client")),
		}
	}
	minute := &metav1.Duration{Duration: time.Minute}
	return &druidv1alpha1.Etcd{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot--dev--crazy", Name: "etcd-main", UID: "2", Annotations: map[string]string{druidv1alpha1.AllowUnhealthyPodEviction: ""},
		},
		Spec: druidv1alpha1.EtcdSpec{
			Replicas: 3, Labels: map[string]string{"role": "main"}, Annotations: map[string]string{"note": "of the pods"},
			PriorityClassName: new("gardener-system-500"), StorageCapacity: new(resource.MustParse("25Gi")), StorageClass: new("fast"),
			VolumeClaimTemplate: new("main-etcd"),
			SchedulingConstraints: &druidv1alpha1.SchedulingConstraints{
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule}},
			},
			SharedConfig: &druidv1alpha1.SharedConfig{AutoCompactionRetention: new("1h")},
			Etcd: druidv1alpha1.EtcdConfig{
				ClientURLTLS: new(tls("etcd")), PeerURLTLS: &druidv1alpha1.PeerTLSConfig{TLSConfig: tls("peer")},
				ClientService:           &druidv1alpha1.ClientService{Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"l": "m"}, TrafficDistribution: new("PreferSameZone")},
				DefragmentationSchedule: new("0 2 */3 * *"), EtcdDefragTimeout: minute, HeartbeatDuration: &metav1.Duration{Duration: 200 * time.Millisecond},
				Metrics: new(druidv1alpha1.MetricsExtensive), Quota: new(resource.MustParse("4Gi")), SnapshotCount: new(int64(10000)),
			},
			Backup: druidv1alpha1.BackupSpec{
				TLS:         new(tls("backup")),
				Compression: &druidv1alpha1.CompressionSpec{Enabled: new(true)}, DeltaSnapshotMemoryLimit: new(resource.MustParse("100Mi")),
				DeltaSnapshotPeriod: &metav1.Duration{Duration: 5 * time.Minute}, FullSnapshotSchedule: new("30 1 * * *"),
				GarbageCollectionPeriod: &metav1.Duration{Duration: 12 * time.Hour}, GarbageCollectionPolicy: new(druidv1alpha1.GarbageCollectionPolicyExponential),
				LeaderElection: &druidv1alpha1.LeaderElectionSpec{ReelectionPeriod: minute},
				Store: &druidv1alpha1.StoreSpec{
					Provider: new(druidv1alpha1.StorageProvider("aws")), Container: new("bucket"), Prefix: "shoot--dev--crazy--uid/etcd-main", SecretRef: new(secret("etcd-backup")),
				},
			},
		},
	}
}

func TestObjects(t *testing.T) {
	localStore := eventsEtcd()
	localStore.Name = "etcd-local"
	localStore.Spec.RunAsRoot = new(true)
	localStore.Spec.Backup.Store = &druidv1alpha1.StoreSpec{Provider: new(druidv1alpha1.StorageProvider("local")), Container: new("bucket"), Prefix: "etcd-local"}
	stopped := mainEtcd()
	stopped.Name, stopped.Spec.Replicas = "etcd-stopped", 0
	for _, etcd := range []*druidv1alpha1.Etcd{eventsEtcd(), mainEtcd(), localStore, stopped} {
		t.Run(etcd.Name, func(t *testing.T) {
			rendered, err := objects(renderValues{
				Etcd: etcd, Replicas: etcd.Spec.Replicas, EtcdImage: "example/etcd:1", BackupRestoreImage: "example/gardener:1", HostPath: "/srv/backups",
			})
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, object := range rendered {
				gvk, err := apiutil.GVKForObject(object, clientgoscheme.Scheme)
				if err != nil {
					t.Fatal(err)
				}
				object.GetObjectKind().SetGroupVersionKind(gvk)
				content, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(content)
				if configMap, ok := object.(*corev1.ConfigMap); ok {
					if _, err := backuprestore.Config.Decode([]byte(configMap.Data[configFile])); err != nil {
						t.Errorf("etcd-backup-restore refuses its configuration: %v", err)
					}
				}
			}
			file := filepath.Join("testdata", etcd.Name+".yaml")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("objects (-want +got); rewrite with -update:\n%s", diff)
			}
		})
	}
}

func TestObjectsRefuse(t *testing.T) {
	etcd := mainEtcd()
	etcd.Spec.Backup.Store.Provider = new(druidv1alpha1.StorageProvider("gcp"))
	_, err := objects(renderValues{Etcd: etcd})
	var unsupported *unsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("objects() with a store of an unknown provider: %v", err)
	}
}
