package v1beta1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1"
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// defaulted returns a Shoot after defaulting, through the scheme as the API server does it.
func defaulted(t *testing.T, change func(*v1beta1.Shoot)) *v1beta1.Shoot {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	shoot := &v1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "crazy-botany", Namespace: "garden-dev"}}
	change(shoot)
	scheme.Default(shoot)
	return shoot
}

func worker(change func(*v1beta1.Worker)) func(*v1beta1.Shoot) {
	return func(shoot *v1beta1.Shoot) {
		w := v1beta1.Worker{Name: "pool"}
		if change != nil {
			change(&w)
		}
		shoot.Spec.Provider = v1beta1.Provider{Type: "local", Workers: []v1beta1.Worker{w}}
	}
}

func TestDefaultShoot(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.Shoot)
		read   func(*v1beta1.Shoot) any
		want   any
	}{
		"the purpose is evaluation": {
			change: worker(nil),
			read:   func(s *v1beta1.Shoot) any { return *s.Spec.Purpose },
			want:   v1beta1.ShootPurposeEvaluation,
		},
		"a shoot in the garden namespace tolerates protected seeds": {
			change: func(s *v1beta1.Shoot) { s.Namespace = "garden" },
			read:   func(s *v1beta1.Shoot) any { return s.Spec.Tolerations },
			want:   []v1beta1.Toleration{{Key: "seed.gardener.cloud/protected"}},
		},
		"110 pods need a range of 24 bits": {
			change: worker(nil),
			read:   func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize },
			want:   int32(24),
		},
		"the pool with the most pods decides about the range": {
			change: worker(func(w *v1beta1.Worker) {
				w.Kubernetes = &v1beta1.WorkerKubernetes{Kubelet: &v1beta1.KubeletConfig{MaxPods: new(int32(250))}}
			}),
			read: func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize },
			want: int32(23),
		},
		"an IPv6 cluster has a range of 64 bits for each node": {
			change: func(s *v1beta1.Shoot) {
				worker(nil)(s)
				s.Spec.Networking = &v1beta1.Networking{IPFamilies: []v1beta1.IPFamily{v1beta1.IPFamilyIPv6}}
			},
			read: func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize },
			want: int32(64),
		},
		"a dual-stack cluster has two ranges for each node": {
			change: func(s *v1beta1.Shoot) {
				worker(nil)(s)
				s.Spec.Networking = &v1beta1.Networking{IPFamilies: []v1beta1.IPFamily{v1beta1.IPFamilyIPv4, v1beta1.IPFamilyIPv6}}
			},
			read: func(s *v1beta1.Shoot) any {
				config := s.Spec.Kubernetes.KubeControllerManager
				return []int32{*config.NodeCIDRMaskSize, *config.NodeCIDRMaskSizeIPv6}
			},
			want: []int32{24, 64},
		},
		"a cluster without workers has no settings for them": {
			change: func(*v1beta1.Shoot) {},
			read: func(s *v1beta1.Shoot) any {
				k := s.Spec.Kubernetes
				return k.Kubelet == nil && k.KubeProxy == nil && k.KubeScheduler == nil && k.KubeControllerManager == nil &&
					s.Spec.SystemComponents == nil && s.Spec.Provider.WorkersSettings == nil && s.Spec.Maintenance.AutoUpdate.MachineImageVersion == nil
			},
			want: true,
		},
		"machines are replaced one by one": {
			change: worker(nil),
			read: func(s *v1beta1.Shoot) any {
				w := s.Spec.Provider.Workers[0]
				return []any{*w.UpdateStrategy, *w.MaxSurge, *w.MaxUnavailable, w.MachineControllerManager == nil}
			},
			want: []any{v1beta1.AutoRollingUpdate, intstr.FromInt32(1), intstr.FromInt32(0), true},
		},
		"in-place updates have no surge and keep unhealthy machines": {
			change: worker(func(w *v1beta1.Worker) { w.UpdateStrategy = new(v1beta1.AutoInPlaceUpdate) }),
			read: func(s *v1beta1.Shoot) any {
				w := s.Spec.Provider.Workers[0]
				return []any{*w.MaxSurge, *w.MaxUnavailable, *w.MachineControllerManager.DisableHealthTimeout}
			},
			want: []any{intstr.FromInt32(0), intstr.FromInt32(1), true},
		},
		"manual updates are paced by the user": {
			change: worker(func(w *v1beta1.Worker) { w.UpdateStrategy = new(v1beta1.ManualInPlaceUpdate) }),
			read: func(s *v1beta1.Shoot) any {
				w := s.Spec.Provider.Workers[0]
				return w.MaxSurge == nil && w.MaxUnavailable == nil
			},
			want: true,
		},
		"swap is limited where it is possible": {
			change: func(s *v1beta1.Shoot) {
				worker(nil)(s)
				s.Spec.Kubernetes.Kubelet = &v1beta1.KubeletConfig{
					KubernetesConfig: v1beta1.KubernetesConfig{FeatureGates: map[string]bool{"NodeSwap": true}}, FailSwapOn: new(false),
				}
			},
			read: func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.Kubelet.MemorySwap.SwapBehavior },
			want: v1beta1.LimitedSwap,
		},
		"parallel pulls are not serialized": {
			change: func(s *v1beta1.Shoot) {
				worker(nil)(s)
				s.Spec.Kubernetes.Kubelet = &v1beta1.KubeletConfig{MaxParallelImagePulls: new(int32(5))}
			},
			read: func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.Kubelet.SerializeImagePulls },
			want: false,
		},
		"the old name of the autoscaler's parallelism counts": {
			change: func(s *v1beta1.Shoot) {
				worker(nil)(s)
				s.Spec.Kubernetes.ClusterAutoscaler = &v1beta1.ClusterAutoscaler{MaxEmptyBulkDelete: new(int32(15))}
			},
			read: func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.ClusterAutoscaler.MaxScaleDownParallelism },
			want: int32(15),
		},
		"what is set stays": {
			change: func(s *v1beta1.Shoot) {
				worker(nil)(s)
				s.Spec.Kubernetes.KubeAPIServer = &v1beta1.KubeAPIServerConfig{EventTTL: seconds(60)}
			},
			read: func(s *v1beta1.Shoot) any { return *s.Spec.Kubernetes.KubeAPIServer.EventTTL },
			want: *seconds(60),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.read(defaulted(t, tc.change))); diff != "" {
				t.Errorf("unexpected default (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultShootTwiceChangesNothing(t *testing.T) {
	once := defaulted(t, worker(nil))
	twice := once.DeepCopy()
	v1beta1.DefaultShoot(twice)
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("the second time changed (-once +twice):\n%s", diff)
	}
}

func TestDefaultMaintenanceWindowIsAnHourOfTheNight(t *testing.T) {
	for range 50 {
		window := defaulted(t, worker(nil)).Spec.Maintenance.TimeWindow
		begin, err := time.Parse("150405-0700", window.Begin)
		if err != nil {
			t.Fatal(err)
		}
		end, err := time.Parse("150405-0700", window.End)
		if err != nil {
			t.Fatal(err)
		}
		if hour := begin.Hour(); hour >= 6 && hour < 22 {
			t.Errorf("the window begins at %s, in the day", window.Begin)
		}
		if length := (end.Sub(begin) + 24*time.Hour) % (24 * time.Hour); length != time.Hour {
			t.Errorf("the window %s to %s takes %s", window.Begin, window.End, length)
		}
	}
}

func TestDefaultSeed(t *testing.T) {
	seed := &v1beta1.Seed{}
	v1beta1.DefaultSeed(seed)
	want := v1beta1.SeedSpec{
		Networks: v1beta1.SeedNetworks{IPFamilies: []v1beta1.IPFamily{v1beta1.IPFamilyIPv4}},
		Settings: &v1beta1.SeedSettings{
			ExcessCapacityReservation: &v1beta1.SeedSettingExcessCapacityReservation{Configs: []v1beta1.SeedSettingExcessCapacityReservationConfig{
				{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("6Gi")}},
			}},
			Scheduling:            &v1beta1.SeedSettingScheduling{Visible: true},
			LoadBalancerServices:  &v1beta1.SeedSettingLoadBalancerServices{ZonalIngress: &v1beta1.SeedSettingLoadBalancerServicesZonalIngress{Enabled: new(true)}},
			VerticalPodAutoscaler: &v1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true},
			DependencyWatchdog: &v1beta1.SeedSettingDependencyWatchdog{
				Weeder: &v1beta1.SeedSettingDependencyWatchdogWeeder{Enabled: true}, Prober: &v1beta1.SeedSettingDependencyWatchdogProber{Enabled: true},
			},
			TopologyAwareRouting:            &v1beta1.SeedSettingTopologyAwareRouting{},
			PersistentVolumeClaimAutoscaler: &v1beta1.SeedSettingPersistentVolumeClaimAutoscaler{},
		},
	}
	if diff := cmp.Diff(want, seed.Spec); diff != "" {
		t.Errorf("DefaultSeed() (-want +got):\n%s", diff)
	}
}

func TestDefaultSeedReservesNothingWhenTurnedOff(t *testing.T) {
	seed := &v1beta1.Seed{Spec: v1beta1.SeedSpec{Settings: &v1beta1.SeedSettings{
		ExcessCapacityReservation: &v1beta1.SeedSettingExcessCapacityReservation{Enabled: new(false)},
	}}}
	v1beta1.DefaultSeed(seed)
	if configs := seed.Spec.Settings.ExcessCapacityReservation.Configs; len(configs) > 0 {
		t.Errorf("pods are reserved although it is turned off: %v", configs)
	}
}

func TestDefaultProject(t *testing.T) {
	project := &v1beta1.Project{Spec: v1beta1.ProjectSpec{
		Namespace: new("garden"),
		Members: []v1beta1.ProjectMember{
			{Subject: rbacv1.Subject{Kind: rbacv1.UserKind, Name: "alice"}},
			{Subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "robot", Namespace: "garden"}, Roles: []string{"uam"}},
		},
	}}
	v1beta1.DefaultProject(project)
	protected := []v1beta1.Toleration{{Key: "seed.gardener.cloud/protected"}}
	want := v1beta1.ProjectSpec{
		Namespace:   new("garden"),
		Tolerations: &v1beta1.ProjectTolerations{Defaults: protected, Whitelist: protected},
		Members: []v1beta1.ProjectMember{
			{Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}, Role: "viewer"},
			{Subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "robot", Namespace: "garden"}, Roles: []string{"uam"}},
		},
	}
	if diff := cmp.Diff(want, project.Spec); diff != "" {
		t.Errorf("DefaultProject() (-want +got):\n%s", diff)
	}
}

func TestDefaultControllerRegistration(t *testing.T) {
	registration := &v1beta1.ControllerRegistration{Spec: v1beta1.ControllerRegistrationSpec{Resources: []v1beta1.ControllerResource{
		{Kind: "Extension", Type: "a"}, {Kind: "SelfHostedShootExposure", Type: "b"}, {Kind: "Worker", Type: "c", Primary: new(false)},
	}}}
	v1beta1.DefaultControllerRegistration(registration)
	want := []v1beta1.ControllerResource{
		{
			Kind: "Extension", Type: "a", Primary: new(true), ReconcileTimeout: seconds(180),
			ClusterCompatibility: []v1beta1.ClusterType{v1beta1.ClusterTypeShoot},
			Lifecycle: &v1beta1.ControllerResourceLifecycle{
				Reconcile: new(v1beta1.AfterKubeAPIServer), Delete: new(v1beta1.BeforeKubeAPIServer), Migrate: new(v1beta1.BeforeKubeAPIServer),
			},
		},
		{Kind: "SelfHostedShootExposure", Type: "b", Primary: new(true), ContinuousEndpointUpdate: new(true)},
		{Kind: "Worker", Type: "c", Primary: new(false)},
	}
	if diff := cmp.Diff(want, registration.Spec.Resources); diff != "" {
		t.Errorf("DefaultControllerRegistration() (-want +got):\n%s", diff)
	}
}

func TestDefaultCloudProfile(t *testing.T) {
	profile := func(capabilities ...v1beta1.CapabilityDefinition) *v1beta1.CloudProfile {
		p := &v1beta1.CloudProfile{Spec: v1beta1.CloudProfileSpec{
			MachineCapabilities: capabilities,
			MachineImages:       []v1beta1.MachineImage{{Versions: []v1beta1.MachineImageVersion{{}}}},
			MachineTypes:        []v1beta1.MachineType{{}},
		}}
		v1beta1.DefaultCloudProfile(p)
		return p
	}
	plain := profile().Spec
	if diff := cmp.Diff([]string{"amd64"}, plain.MachineImages[0].Versions[0].Architectures); diff != "" {
		t.Errorf("architectures (-want +got):\n%s", diff)
	}
	if plain.MachineTypes[0].Architecture == nil || *plain.MachineTypes[0].Architecture != "amd64" {
		t.Error("the machine type has no architecture")
	}
	capable := profile(v1beta1.CapabilityDefinition{Name: "architecture", Values: v1beta1.CapabilityValues{"arm64"}}).Spec
	if capable.MachineImages[0].Versions[0].Architectures != nil || capable.MachineTypes[0].Architecture != nil {
		t.Error("architectures are guessed although the profile declares capabilities")
	}
}
