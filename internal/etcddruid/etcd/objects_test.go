package etcd

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
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
	for name, tc := range map[string]struct {
		change func(*druidv1alpha1.StoreSpec)
		want   string
	}{
		"an unknown provider": {func(s *druidv1alpha1.StoreSpec) { s.Provider = new(druidv1alpha1.StorageProvider("GCP")) }, `"GCP" is not supported; supported are [ABS `},
		"no provider":         {func(s *druidv1alpha1.StoreSpec) { s.Provider = nil }, `"" is not supported`},
		"an endpoint that Keystone knows better": {func(s *druidv1alpha1.StoreSpec) {
			s.Provider, s.EndpointOverride = new(druidv1alpha1.StorageProvider("openstack")), new("https://swift.example.com")
		}, `"openstack" has its endpoint from Keystone`},
		"no credentials": {func(s *druidv1alpha1.StoreSpec) { s.SecretRef = nil }, `"aws" needs a secretRef`},
	} {
		etcd := mainEtcd()
		tc.change(etcd.Spec.Backup.Store)
		_, err := objects(renderValues{Etcd: etcd})
		var unsupported *unsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// All that has to know a store, and nothing else, gets the Secret of it, and the configuration says what it is. Credentials are in no environment.
func TestStores(t *testing.T) {
	for provider, want := range map[druidv1alpha1.StorageProvider]string{
		"aws": "S3", "S3": "S3", "stackit": "S3", "azure": "ABS", "ABS": "ABS", "gcp": "GCS", "GCS": "GCS", "openstack": "Swift", "Swift": "Swift",
		"alicloud": "OSS", "OSS": "OSS", "dell": "ECS", "ECS": "ECS", "openshift": "OCS", "OCS": "OCS",
	} {
		t.Run(string(provider), func(t *testing.T) {
			etcd := mainEtcd()
			etcd.Spec.Backup.Store.Provider = &provider
			endpoint := ""
			if want != "Swift" {
				endpoint = "https://store.example.com"
				etcd.Spec.Backup.Store.EndpointOverride = &endpoint
			}
			rendered, err := objects(renderValues{Etcd: etcd, Replicas: 1, EtcdImage: "example/etcd:1", BackupRestoreImage: "example/gardener:1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range rendered {
				switch o := object.(type) {
				case *corev1.ConfigMap:
					config, err := backuprestore.Config.Decode([]byte(o.Data[configFile]))
					if err != nil {
						t.Fatalf("etcd-backup-restore refuses its configuration: %v", err)
					}
					if diff := cmp.Diff(&backuprestoreconfigv1alpha1.Store{
						Provider: want, Container: "bucket", Prefix: "shoot--dev--crazy--uid/etcd-main", CredentialsDir: storeSecrets, Endpoint: endpoint,
					}, config.Store); diff != "" {
						t.Errorf("store (-want +got):\n%s", diff)
					}
				case *appsv1.StatefulSet:
					checkAccess(t, &o.Spec.Template.Spec)
				}
			}
		})
	}
}

// checkAccess checks which containers have the credentials of the store.
func checkAccess(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	var secrets, readers []string
	for _, volume := range pod.Volumes {
		if volume.Name == "store" {
			secrets = append(secrets, volume.Secret.SecretName)
		}
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		if slices.Contains(container.VolumeMounts, corev1.VolumeMount{Name: "store", MountPath: storeSecrets, ReadOnly: true}) {
			readers = append(readers, container.Name)
		}
		for _, variable := range container.Env {
			if variable.Name != "POD_NAME" {
				t.Errorf("%s has %s in its environment", container.Name, variable.Name)
			}
		}
	}
	if diff := cmp.Diff([][]string{{"etcd-backup"}, {"initialize", "backup-restore"}}, [][]string{secrets, readers}); diff != "" {
		t.Errorf("Secrets and who reads them (-want +got):\n%s", diff)
	}
}
