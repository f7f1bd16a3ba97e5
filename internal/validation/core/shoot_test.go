package core_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestValidateShoot(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.Shoot)
		want   []string
	}{
		"a usual shoot is valid": {change: func(*v1beta1.Shoot) {}},
		"two hyphens separate names in technical IDs": {
			change: func(s *v1beta1.Shoot) { s.Name = "crazy--botany" },
			want:   []string{"FieldValueInvalid metadata.name"},
		},
		"a finalizer of Gardener is not set by users": {
			change: func(s *v1beta1.Shoot) { s.Finalizers = []string{"gardener"} },
			want:   []string{"FieldValueForbidden metadata.finalizers[0]"},
		},
		"credentials are needed": {
			change: func(s *v1beta1.Shoot) { s.Spec.CredentialsBindingName = nil },
			want:   []string{"FieldValueRequired spec.secretBindingName"},
		},
		"the infrastructure purpose is for the landscape": {
			change: func(s *v1beta1.Shoot) { s.Spec.Purpose = new(v1beta1.ShootPurposeInfrastructure) },
			want:   []string{"FieldValueNotSupported spec.purpose"},
		},
		"a range that is not canonical": {
			change: func(s *v1beta1.Shoot) { s.Spec.Networking.Pods = new("10.3.0.1/16") },
			want:   []string{"FieldValueInvalid spec.networking.pods"},
		},
		"an IPv4 range in an IPv6 cluster": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Networking = &v1beta1.Networking{Type: new("local"), Pods: new("10.3.0.0/16"), IPFamilies: []v1beta1.IPFamily{v1beta1.IPFamilyIPv6}}
				s.Spec.Kubernetes.KubeControllerManager = nil
			},
			want: []string{"FieldValueInvalid spec.networking.pods"},
		},
		"a node's range without room for its pods": {
			change: func(s *v1beta1.Shoot) { s.Spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize = new(int32(26)) },
			want:   []string{"FieldValueInvalid spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"},
		},
		"a maintenance window of a quarter of an hour": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Maintenance.TimeWindow = &v1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "221500+0000"}
			},
			want: []string{"FieldValueInvalid spec.maintenance.timeWindow"},
		},
		"a maintenance window over midnight": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Maintenance.TimeWindow = &v1beta1.MaintenanceTimeWindow{Begin: "233000+0100", End: "003000+0100"}
			},
		},
		"an empty hibernation schedule": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Hibernation = &v1beta1.Hibernation{Schedules: []v1beta1.HibernationSchedule{{}}}
			},
			want: []string{"FieldValueRequired spec.hibernation.schedules[0].start/end"},
		},
		"a hibernation schedule that is no cron expression": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Hibernation = &v1beta1.Hibernation{Schedules: []v1beta1.HibernationSchedule{{Start: new("late"), Location: new("Nowhere")}}}
			},
			want: []string{"FieldValueInvalid spec.hibernation.schedules[0].location", "FieldValueInvalid spec.hibernation.schedules[0].start"},
		},
		"a pool smaller than its minimum": {
			change: func(s *v1beta1.Shoot) { s.Spec.Provider.Workers[0].Maximum = 0 },
			want:   []string{"FieldValueForbidden spec.provider.workers", "FieldValueForbidden spec.provider.workers[0].maximum"},
		},
		"as many failed machines are kept as there may be": {
			change: func(s *v1beta1.Shoot) {
				w := &s.Spec.Provider.Workers[0]
				w.MachineControllerManager = &v1beta1.MachineControllerManagerSettings{AutoPreserveFailedMachineMax: &w.Maximum, MachinePreserveTimeout: &metav1.Duration{}}
			},
			want: []string{
				"FieldValueInvalid spec.provider.workers[0].machineControllerManagerSettings.autoPreserveFailedMachineMax",
				"FieldValueInvalid spec.provider.workers[0].machineControllerManagerSettings.machinePreserveTimeout",
			},
		},
		"one of them is left for system components": {
			change: func(s *v1beta1.Shoot) {
				w := &s.Spec.Provider.Workers[0]
				w.MachineControllerManager = &v1beta1.MachineControllerManagerSettings{AutoPreserveFailedMachineMax: new(w.Maximum - 1)}
			},
		},
		"system components are in another pool": {
			change: func(s *v1beta1.Shoot) {
				w := s.Spec.Provider.Workers[0].DeepCopy()
				w.Name, w.SystemComponents = "kept", &v1beta1.WorkerSystemComponents{}
				w.MachineControllerManager = &v1beta1.MachineControllerManagerSettings{AutoPreserveFailedMachineMax: &w.Maximum}
				s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, *w)
			},
		},
		"an update that cannot move": {
			change: func(s *v1beta1.Shoot) { s.Spec.Provider.Workers[0].MaxSurge = new(intstr.FromString("0%")) },
			want:   []string{"FieldValueInvalid spec.provider.workers[0].maxUnavailable"},
		},
		"in-place updates need their gate": {
			change: func(s *v1beta1.Shoot) { s.Spec.Provider.Workers[0].UpdateStrategy = new(v1beta1.AutoInPlaceUpdate) },
			want:   []string{"FieldValueInvalid spec.provider.workers[0].updateStrategy"},
		},
		"a taint of Gardener": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Provider.Workers[0].Taints = []corev1.Taint{{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule}}
			},
			want: []string{"FieldValueForbidden spec.provider.workers[0].taints[0].key"},
		},
		"container runtimes of two pools whose resources would have the same name": {
			change: func(s *v1beta1.Shoot) {
				pool := func(name, runtime string) v1beta1.Worker {
					worker := *s.Spec.Provider.Workers[0].DeepCopy()
					worker.Name = name
					worker.CRI = &v1beta1.CRI{Name: v1beta1.CRINameContainerD, ContainerRuntimes: []v1beta1.ContainerRuntime{{Type: "gvisor"}, {Type: runtime}}}
					return worker
				}
				s.Spec.Provider.Workers = []v1beta1.Worker{pool("c", "a-b"), pool("d", "kata"), pool("b-c", "a")}
			},
			want: []string{"FieldValueInvalid spec.provider.workers[2].cri.containerruntimes[1].type"},
		},
		"data volumes without a root disk": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Provider.Workers[0].DataVolumes = []v1beta1.DataVolume{{Name: "data", VolumeSize: "10Gi"}}
			},
			want: []string{"FieldValueRequired spec.provider.workers[0].volume"},
		},
		"a pool newer than the control plane": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Provider.Workers[0].Kubernetes = &v1beta1.WorkerKubernetes{Version: new("1.36.1")}
			},
			want: []string{"FieldValueForbidden spec.provider.workers[0].kubernetes.version"},
		},
		"a pool four minor versions behind": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Provider.Workers[0].Kubernetes = &v1beta1.WorkerKubernetes{Version: new("1.31.0")}
			},
			want: []string{"FieldValueForbidden spec.provider.workers[0].kubernetes.version"},
		},
		"an unknown feature gate, one that is locked, and one of a later version": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Version = "1.33.11"
				s.Spec.Kubernetes.Kubelet.FeatureGates = map[string]bool{"NoSuchGate": true, "NFTablesProxyMode": false, "NodeDeclaredFeatures": true}
			},
			want: []string{
				"FieldValueForbidden spec.kubernetes.kubelet.featureGates.NFTablesProxyMode",
				"FieldValueForbidden spec.kubernetes.kubelet.featureGates.NodeDeclaredFeatures",
				"FieldValueInvalid spec.kubernetes.kubelet.featureGates.NoSuchGate",
			},
		},
		"a policy that a pool has from the cluster, and no kubelet of its version": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet.ImagePullCredentialsVerificationPolicy = new(v1beta1.AlwaysVerify)
				s.Spec.Provider.Workers[0].Kubernetes = &v1beta1.WorkerKubernetes{
					Version: new("1.34.1"), Kubelet: &v1beta1.KubeletConfig{KubeReserved: &v1beta1.KubeletConfigReserved{CPU: new(resource.MustParse("80m"))}},
				}
			},
			want: []string{"FieldValueForbidden spec.provider.workers[0].kubernetes.kubelet.imagePullCredentialsVerificationPolicy"},
		},
		"kubelets that would not start, by defaults": {
			change: func(s *v1beta1.Shoot) {
				pool := s.Spec.Provider.Workers[0]
				kubelet := func(config v1beta1.KubeletConfig) {
					p := *pool.DeepCopy()
					p.Name = string(rune('a' + len(s.Spec.Provider.Workers)))
					p.Kubernetes = &v1beta1.WorkerKubernetes{Kubelet: &config}
					s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, p)
				}
				kubelet(v1beta1.KubeletConfig{ImageGCHighThresholdPercent: new(int32(40))})
				kubelet(v1beta1.KubeletConfig{ImageGCLowThresholdPercent: new(int32(50))})
				kubelet(v1beta1.KubeletConfig{ImageMaximumGCAge: &metav1.Duration{Duration: 2 * time.Minute}})
				kubelet(v1beta1.KubeletConfig{
					ImageGCHighThresholdPercent: new(int32(41)), ImageMinimumGCAge: &metav1.Duration{}, ImageMaximumGCAge: &metav1.Duration{Duration: 121 * time.Second},
				})
				kubelet(v1beta1.KubeletConfig{ImageGCLowThresholdPercent: new(int32(49)), ImageMinimumGCAge: &metav1.Duration{Duration: time.Hour}})
			},
			want: []string{
				"FieldValueForbidden spec.provider.workers[1].kubernetes.kubelet.imageGCHighThresholdPercent",
				"FieldValueForbidden spec.provider.workers[2].kubernetes.kubelet.imageGCLowThresholdPercent",
				"FieldValueInvalid spec.provider.workers[3].kubernetes.kubelet.imageMaximumGCAge",
			},
		},
		"kubelets that would not start, by their ages of images": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet.ImageMinimumGCAge = &metav1.Duration{Duration: time.Hour}
				s.Spec.Kubernetes.Kubelet.ImageMaximumGCAge = &metav1.Duration{Duration: time.Hour}
			},
			want: []string{"FieldValueInvalid spec.kubernetes.kubelet.imageMaximumGCAge"},
		},
		"kubelets that would not start, by their limits": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet.EvictionHard = &v1beta1.KubeletConfigEviction{
					MemoryAvailable: new("0"), ImageFSAvailable: new("0Mi"), ImageFSInodesFree: new("100.5%"), NodeFSAvailable: new("5 %"), NodeFSInodesFree: new("101%"),
				}
				s.Spec.Kubernetes.Kubelet.EvictionSoft = &v1beta1.KubeletConfigEviction{
					MemoryAvailable: new("0%"), ImageFSAvailable: new("100%"), ImageFSInodesFree: new("0.5%"), NodeFSAvailable: new("1Mi"), NodeFSInodesFree: new("0"),
				}
			},
			want: []string{
				"FieldValueInvalid spec.kubernetes.kubelet.evictionHard.imagefsAvailable",
				"FieldValueInvalid spec.kubernetes.kubelet.evictionHard.imagefsInodesFree",
				"FieldValueInvalid spec.kubernetes.kubelet.evictionHard.memoryAvailable",
				"FieldValueInvalid spec.kubernetes.kubelet.evictionHard.nodefsAvailable",
				"FieldValueInvalid spec.kubernetes.kubelet.evictionHard.nodefsInodesFree",
				"FieldValueInvalid spec.kubernetes.kubelet.evictionSoft.nodefsInodesFree",
			},
		},
		"an API version that the cluster needs": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.RuntimeConfig = map[string]bool{"apps/v1": false, "batch/v1beta1": true}
			},
			want: []string{"FieldValueForbidden spec.kubernetes.kubeAPIServer.runtimeConfig[apps/v1]"},
		},
		"an admission plugin that cannot be turned off": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.AdmissionPlugins = []v1beta1.AdmissionPlugin{{Name: "PodSecurity", Disabled: new(true)}}
			},
			want: []string{"FieldValueForbidden spec.kubernetes.kubeAPIServer.admissionPlugins[0]"},
		},
		"an admission plugin twice": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.AdmissionPlugins = []v1beta1.AdmissionPlugin{{Name: "AlwaysPullImages"}, {Name: "AlwaysPullImages"}}
			},
		},
		"an admission plugin on and off": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.AdmissionPlugins = []v1beta1.AdmissionPlugin{{Name: "AlwaysPullImages"}, {Name: "AlwaysPullImages", Disabled: new(true)}}
			},
			want: []string{"FieldValueDuplicate spec.kubernetes.kubeAPIServer.admissionPlugins[1].name"},
		},
		"configurations of admission plugins": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.AdmissionPlugins = []v1beta1.AdmissionPlugin{
					{Name: "ImagePolicyWebhook"},
					{Name: "ResourceQuota", Config: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
					{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: new("webhooks"), Config: &runtime.RawExtension{Raw: []byte(`{"staticManifestsDir":"/x"}`)}},
					{Name: "EventRateLimit", Disabled: new(true)},
					{Name: "AlwaysPullImages", Disabled: new(true), Config: &runtime.RawExtension{Raw: []byte(`{}`)}},
					{Name: "RuntimeClass", KubeconfigSecretName: new("webhooks")},
				}
			},
			want: []string{
				"FieldValueRequired spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName",
				"FieldValueInvalid spec.kubernetes.kubeAPIServer.admissionPlugins[1].config",
				"FieldValueInvalid spec.kubernetes.kubeAPIServer.admissionPlugins[2].config",
				"FieldValueForbidden spec.kubernetes.kubeAPIServer.admissionPlugins[4].config",
				"FieldValueForbidden spec.kubernetes.kubeAPIServer.admissionPlugins[5].kubeconfigSecretName",
			},
		},
		"secrets are always encrypted": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = []string{"secrets", "*.*"}
			},
			want: []string{
				"FieldValueForbidden spec.kubernetes.kubeAPIServer.encryptionConfig.resources[0]",
				"FieldValueInvalid spec.kubernetes.kubeAPIServer.encryptionConfig.resources[1]",
			},
		},
		"oidcConfig ended with Kubernetes 1.32": {
			change: func(s *v1beta1.Shoot) { s.Spec.Kubernetes.KubeAPIServer.OIDCConfig = &v1beta1.OIDCConfig{} },
			want:   []string{"FieldValueForbidden spec.kubernetes.kubeAPIServer.oidcConfig"},
		},
		"oidcConfig needs issuer and client": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Version = "1.31.1"
				s.Spec.Kubernetes.KubeAPIServer.OIDCConfig = &v1beta1.OIDCConfig{IssuerURL: new("http://a.example.com"), SigningAlgs: []string{"none"}}
			},
			want: []string{
				"FieldValueInvalid spec.kubernetes.kubeAPIServer.oidcConfig.issuerURL",
				"FieldValueNotSupported spec.kubernetes.kubeAPIServer.oidcConfig.signingAlgs[0]",
				"FieldValueRequired spec.kubernetes.kubeAPIServer.oidcConfig.clientID",
			},
		},
		"a cluster without workers has no pod network": {
			change: func(s *v1beta1.Shoot) {
				*s = v1beta1.Shoot{ObjectMeta: s.ObjectMeta, Spec: v1beta1.ShootSpec{
					CloudProfile: s.Spec.CloudProfile, Region: "local", Kubernetes: v1beta1.Kubernetes{Version: "1.35.4"},
					Networking: &v1beta1.Networking{Pods: new("10.3.0.0/16")}, Provider: v1beta1.Provider{Type: "local"},
				}}
				v1beta1.DefaultShoot(s)
			},
			want: []string{"FieldValueForbidden spec.networking.pods"},
		},
		"operations that contradict each other": {
			change: func(s *v1beta1.Shoot) {
				s.Status.LastOperation = &v1beta1.LastOperation{Type: v1beta1.LastOperationTypeReconcile}
				s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-ca-start;rotate-ca-start-without-workers-rollout"}
			},
			want: []string{"FieldValueForbidden metadata.annotations[gardener.cloud/operation]"},
		},
		"operations side by side, with spaces": {
			change: func(s *v1beta1.Shoot) {
				s.Annotations = map[string]string{"gardener.cloud/operation": "reconcile; rotate-ssh-keypair"}
			},
		},
		"a rotation is not completed before it is prepared": {
			change: func(s *v1beta1.Shoot) {
				s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-ca-complete"}
			},
			want: []string{"FieldValueForbidden metadata.annotations[gardener.cloud/operation]"},
		},
		"a token that lives too long": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.ServiceAccountConfig = &v1beta1.ServiceAccountConfig{MaxTokenExpiration: &metav1.Duration{Duration: 91 * 24 * time.Hour}}
			},
			want: []string{"FieldValueForbidden spec.kubernetes.kubeAPIServer.serviceAccountConfig.maxTokenExpiration"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shoot()
			tc.change(s)
			validationtest.Expect(t, core.ValidateShoot(s, options), tc.want...)
		})
	}
}

// inPlaceShoot has a pool that is updated in place.
func inPlaceShoot(s *v1beta1.Shoot) {
	w := &s.Spec.Provider.Workers[0]
	w.UpdateStrategy, w.MaxSurge, w.MaxUnavailable = new(v1beta1.AutoInPlaceUpdate), new(intstr.FromInt32(0)), new(intstr.FromInt32(1))
	w.Machine.Image = &v1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}
}

// pendingShoot has one whose nodes are not updated yet.
func pendingShoot(s *v1beta1.Shoot) {
	inPlaceShoot(s)
	s.Status.InPlaceUpdates = &v1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &v1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: []string{s.Spec.Provider.Workers[0].Name}}}
}

func TestValidateShootUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		old, change func(*v1beta1.Shoot)
		want        []string
	}{
		"no change": {change: func(*v1beta1.Shoot) {}},
		"the region stays": {
			change: func(s *v1beta1.Shoot) { s.Spec.Region = "elsewhere" },
			want:   []string{"FieldValueInvalid spec.region"},
		},
		"the version rises by one minor version": {
			change: func(s *v1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.36.1" },
		},
		"minor versions are not skipped": {
			change: func(s *v1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.37.0" },
			want:   []string{"FieldValueForbidden spec.kubernetes.version"},
		},
		"the version does not go back": {
			change: func(s *v1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.35.3" },
			want:   []string{"FieldValueForbidden spec.kubernetes.version", "FieldValueForbidden spec.provider.workers[0].kubernetes.version"},
		},
		"a second IP family is added": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Networking.IPFamilies = []v1beta1.IPFamily{v1beta1.IPFamilyIPv4, v1beta1.IPFamilyIPv6}
			},
		},
		"the IP family is not exchanged": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Networking = &v1beta1.Networking{Type: new("local"), Pods: s.Spec.Networking.Pods, Services: s.Spec.Networking.Services, IPFamilies: []v1beta1.IPFamily{v1beta1.IPFamilyIPv6, v1beta1.IPFamilyIPv4}}
			},
			want: []string{"FieldValueForbidden spec.networking.ipFamilies"},
		},
		"what only new machines get stays in a pool that is updated in place": {
			old: inPlaceShoot, change: func(s *v1beta1.Shoot) {
				w := &s.Spec.Provider.Workers[0]
				w.Machine.Type, w.Machine.Image.Name, w.Volume = "big", "other", &v1beta1.Volume{VolumeSize: "70Gi"}
			},
			want: []string{
				"FieldValueForbidden spec.provider.workers[0].machine.image.name", "FieldValueForbidden spec.provider.workers[0].machine.type",
				"FieldValueForbidden spec.provider.workers[0].volume",
			},
		},
		"an image is not older in a pool that is updated in place": {
			old: inPlaceShoot, change: func(s *v1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = new("0.9.0") },
			want: []string{"FieldValueForbidden spec.provider.workers[0].machine.image.version"},
		},
		"the DNS cache stays with a pool that is updated in place": {
			old: inPlaceShoot, change: func(s *v1beta1.Shoot) {
				s.Spec.SystemComponents = &v1beta1.SystemComponents{NodeLocalDNS: &v1beta1.NodeLocalDNS{Enabled: true}}
			},
			want: []string{"FieldValueForbidden spec.systemComponents.nodeLocalDNS.enabled"},
		},
		"the user may select nodes from now on": {
			old: inPlaceShoot, change: func(s *v1beta1.Shoot) {
				w := &s.Spec.Provider.Workers[0]
				w.UpdateStrategy, w.MaxUnavailable = new(v1beta1.ManualInPlaceUpdate), nil
			},
		},
		"a pool whose update is pending is not updated again": {
			old: pendingShoot, change: func(s *v1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.36.1" },
			want: []string{"FieldValueForbidden spec.provider.workers[0]"},
		},
		"nor does its kubelet change": {
			old: pendingShoot, change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet = &v1beta1.KubeletConfig{CPUManagerPolicy: new("static")}
			},
			want: []string{"FieldValueForbidden spec.provider.workers[0]"},
		},
		"its size changes": {old: pendingShoot, change: func(s *v1beta1.Shoot) { s.Spec.Provider.Workers[0].Maximum += 2 }},
		"its update is forced": {
			old: pendingShoot, change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Version = "1.36.1"
				s.Annotations = map[string]string{"gardener.cloud/operation": "force-in-place-update"}
			},
		},
		"no rotation starts while an update is pending": {
			old: pendingShoot, change: func(s *v1beta1.Shoot) {
				s.Status.LastOperation = &v1beta1.LastOperation{Type: v1beta1.LastOperationTypeReconcile}
				s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-ca-start"}
			},
			want: []string{"FieldValueForbidden metadata.annotations[gardener.cloud/operation]"},
		},
		"the last pool stays": {
			change: func(s *v1beta1.Shoot) {
				s.Spec.Provider.Workers = nil
				s.Spec.Provider.WorkersSettings, s.Spec.SystemComponents = nil, nil
				k := &s.Spec.Kubernetes
				k.Kubelet, k.KubeProxy, k.KubeScheduler, k.KubeControllerManager = nil, nil, nil, nil
				s.Spec.Maintenance.AutoUpdate.MachineImageVersion = nil
			},
			want: []string{
				"FieldValueForbidden spec.credentialsBindingName", "FieldValueForbidden spec.networking.nodes", "FieldValueForbidden spec.networking.pods",
				"FieldValueForbidden spec.networking.type", "FieldValueForbidden spec.provider.workers",
			},
		},
		"a SecretBinding is replaced by a CredentialsBinding": {
			old: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Version, s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = "1.33.1", new("local"), nil
			},
			change: func(s *v1beta1.Shoot) { s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = nil, new("local") },
		},
		"kubelets that do not start stay as they are": {
			old: kubeletsThatDoNotStart,
			change: func(s *v1beta1.Shoot) {
				s.Spec.Provider.Workers = append([]v1beta1.Worker{*s.Spec.Provider.Workers[0].DeepCopy()}, s.Spec.Provider.Workers...)
				s.Spec.Provider.Workers[0].Name, s.Spec.Provider.Workers[0].Kubernetes = "another", nil
			},
		},
		"kubelets that do not start are not changed, except to start": {
			old: kubeletsThatDoNotStart,
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet.MaxPods = new(int32(50))
				s.Spec.Provider.Workers[0].Kubernetes.Kubelet.ImageGCHighThresholdPercent = new(int32(70))
			},
			want: []string{"FieldValueInvalid spec.kubernetes.kubelet.evictionHard.nodefsInodesFree"},
		},
		"encryption is not changed while another change is in progress": {
			old: func(s *v1beta1.Shoot) {
				s.Status.Credentials = &v1beta1.ShootCredentials{EncryptionAtRest: &v1beta1.EncryptionAtRest{Resources: []string{"configmaps"}}}
			},
			change: func(s *v1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = []string{"events"}
			},
			want: []string{"FieldValueForbidden spec.kubernetes.kubeAPIServer.encryptionConfig.resources"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := shoot()
			if tc.old != nil {
				tc.old(old)
			}
			s := old.DeepCopy()
			tc.change(s)
			gated := options
			gated.InPlaceNodeUpdates = true
			validationtest.Expect(t, core.ValidateShootUpdate(s, old, gated), tc.want...)
		})
	}
}

func kubeletsThatDoNotStart(s *v1beta1.Shoot) {
	s.Spec.Kubernetes.Kubelet.EvictionHard = &v1beta1.KubeletConfigEviction{NodeFSInodesFree: new("0")}
	s.Spec.Provider.Workers[0].Kubernetes = &v1beta1.WorkerKubernetes{
		Kubelet: &v1beta1.KubeletConfig{FailSwapOn: new(true), ImageGCHighThresholdPercent: new(int32(30))},
	}
}
