package values

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestAutoscalersOfControlPlanes(t *testing.T) {
	const restriction = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
	window := &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}}
	objects := []client.Object{&corev1.Secret{}}
	for _, name := range []string{"kube-apiserver", "kube-scheduler", "vpn-seed-server"} {
		objects = append(objects, (workload.Workload{Name: name}).Deployment())
	}
	for name, tc := range map[string]struct {
		off, never bool
		change     func(*corev1beta1.Shoot)
		vpn        string
	}{
		"in the maintenance time window": {change: func(*corev1beta1.Shoot) {}, vpn: "Recreate"},
		"production":                     {change: func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeProduction) }, never: true, vpn: "Recreate"},
		"infrastructure":                 {change: func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeInfrastructure) }, never: true, vpn: "Recreate"},
		"as the owner wants": {change: func(s *corev1beta1.Shoot) {
			s.Annotations = map[string]string{"alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled": "true"}
		}, never: true, vpn: "Recreate"},
		"no window": {change: func(s *corev1beta1.Shoot) { s.Spec.Maintenance = nil }, never: true, vpn: "Recreate"},
		"a tunnel that is not to be interrupted": {change: func(s *corev1beta1.Shoot) {
			s.Annotations = map[string]string{"alpha.control-plane.shoot.gardener.cloud/vpn-vpa-update-disabled": "true"}
		}, vpn: "Off"},
		"a seed that does not scale": {off: true, change: func(*corev1beta1.Shoot) {}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Shoot.Spec.Maintenance = window
			tc.change(o.Shoot)
			o.Seed.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: !tc.off}}
			got := map[string]string{}
			for _, vpa := range Autoscalers(o, objects) {
				mode, _, _ := unstructured.NestedString(vpa.(*unstructured.Unstructured).Object, "spec", "updatePolicy", "updateMode") //nolint:forcetypeassert // it panics in a test
				got[vpa.GetName()] = mode + " " + vpa.GetAnnotations()[restriction]
			}
			want := map[string]string{"kube-apiserver-vpa": "Recreate in-maintenance-window-only", "kube-scheduler-vpa": "Recreate ", "vpn-seed-server-vpa": tc.vpn + " "}
			if tc.never {
				want["kube-apiserver-vpa"] = "Recreate never"
			}
			if tc.off {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("autoscalers (-want +got):\n%s", diff)
			}
		})
	}
}

// The bounds for the pods of the kube-apiserver, and the smallest requests of one.
func TestKubeAPIServersScale(t *testing.T) {
	for name, tc := range map[string]struct {
		off      bool
		replicas int32
		change   func(*corev1beta1.Shoot)
		want     *kubeapiserver.Autoscaling
	}{
		"usual": {replicas: 1, change: func(*corev1beta1.Shoot) {}, want: &kubeapiserver.Autoscaling{MinReplicas: 2, MaxReplicas: 6}},
		"highly available": {replicas: 2, change: func(s *corev1beta1.Shoot) {
			s.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
				FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeNode},
			}}
		}, want: &kubeapiserver.Autoscaling{MinReplicas: 3, MaxReplicas: 6}},
		"never fewer": {replicas: 1, change: func(s *corev1beta1.Shoot) {
			s.Annotations = map[string]string{"alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled": "true"}
		}, want: &kubeapiserver.Autoscaling{MinReplicas: 4, MaxReplicas: 6, ScaleDownDisabled: true}},
		"hibernated":                 {change: func(*corev1beta1.Shoot) {}},
		"a seed that does not scale": {off: true, replicas: 1, change: func(*corev1beta1.Shoot) {}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			tc.change(o.Shoot)
			o.Seed.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: !tc.off}}
			if diff := cmp.Diff(tc.want, horizontally(o, tc.replicas)); diff != "" {
				t.Errorf("horizontally() (-want +got):\n%s", diff)
			}
		})
	}
	o := observedtest.State()
	o.Seed.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true}}
	o.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{Autoscaling: &corev1beta1.ControlPlaneAutoscaling{
		MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2G")},
	}}
	vpas := Autoscalers(o, []client.Object{(workload.Workload{Name: "kube-apiserver", Container: corev1.Container{Resources: workload.Requests("250m", "2G")}}).Deployment()})
	policies, _, _ := unstructured.NestedSlice(vpas[0].(*unstructured.Unstructured).Object, "spec", "resourcePolicy", "containerPolicies") //nolint:forcetypeassert // as above
	if diff := cmp.Diff(map[string]any{"cpu": "20m", "memory": "2G"}, policies[0].(map[string]any)["minAllowed"]); diff != "" {            //nolint:forcetypeassert // as above
		t.Errorf("minAllowed (-want +got):\n%s", diff)
	}
}

func TestEtcdMinimum(t *testing.T) {
	much := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	config := &corev1beta1.ETCDConfig{Autoscaling: &corev1beta1.ControlPlaneAutoscaling{MinAllowed: much}}
	for name, tc := range map[string]struct {
		etcd *corev1beta1.ETCD
		role etcd.Role
		want corev1.ResourceList
	}{
		"nothing said":      {role: etcd.Main},
		"of the main one":   {etcd: &corev1beta1.ETCD{Main: config}, role: etcd.Main, want: much},
		"of the other one":  {etcd: &corev1beta1.ETCD{Main: config}, role: etcd.Events},
		"of that of events": {etcd: &corev1beta1.ETCD{Main: &corev1beta1.ETCDConfig{}, Events: config}, role: etcd.Events, want: much},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Shoot.Spec.Kubernetes.ETCD = tc.etcd
			if diff := cmp.Diff(tc.want, etcdMinimum(o, tc.role)); diff != "" {
				t.Errorf("etcdMinimum() (-want +got):\n%s", diff)
			}
		})
	}
}

// Otherwise a shoot owner could request a whole node of a seed, for which control planes of others are evicted.
func TestMinimumIsBounded(t *testing.T) {
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(credentials.Values{SeedAPI: fake.NewFakeClient(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)})
	stagetest.Generate(t, set)
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	for name, tc := range map[string]struct {
		maximum corev1.ResourceList
		minimum corev1.ResourceList
		want    corev1.ResourceList
	}{
		"small":                      {minimum: list("2", "4Gi"), want: list("2", "4Gi")},
		"large":                      {minimum: list("60", "4Gi"), want: list("8", "4Gi")},
		"larger than the seed's":     {maximum: list("2", "4Gi"), minimum: list("60", "240Gi"), want: list("2", "4Gi")},
		"large, as the seed has it":  {maximum: list("20", "100Gi"), minimum: list("16", "64Gi"), want: list("16", "64Gi")},
		"the seed has a maximum CPU": {maximum: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}, minimum: list("60", "240Gi"), want: list("60", "32Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Seed.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true, MaxAllowed: tc.maximum}}
			autoscaling := &corev1beta1.ControlPlaneAutoscaling{MinAllowed: tc.minimum}
			kubernetes := &o.Shoot.Spec.Kubernetes
			kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{Autoscaling: autoscaling}
			kubernetes.ClusterAutoscaler = &corev1beta1.ClusterAutoscaler{Autoscaling: autoscaling}
			kubernetes.ETCD = &corev1beta1.ETCD{Main: &corev1beta1.ETCDConfig{Autoscaling: autoscaling}}
			o.Shoot.Spec.Networking = &corev1beta1.Networking{Services: new("100.64.0.0/13")}
			s := Source{State: o, Credentials: set, Images: images}
			apiServer, err := s.KubeAPIServer(1, kubeapiserver.Files{})
			if err != nil {
				t.Fatal(err)
			}
			autoscaler, err := s.ClusterAutoscaler(1, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			vpa := Autoscalers(o, []client.Object{(workload.Workload{Name: "kube-apiserver"}).Deployment()})[0].(*unstructured.Unstructured) //nolint:forcetypeassert // as above
			policies, _, _ := unstructured.NestedSlice(vpa.Object, "spec", "resourcePolicy", "containerPolicies")
			scaled := corev1.ResourceList{}
			for name, value := range policies[0].(map[string]any)["minAllowed"].(map[string]any) { //nolint:forcetypeassert // as above
				scaled[corev1.ResourceName(name)] = resource.MustParse(value.(string)) //nolint:forcetypeassert // as above
			}
			for component, got := range map[string]corev1.ResourceList{
				"kube-apiserver": apiServer.Config.Autoscaling.MinAllowed, "cluster-autoscaler": autoscaler.Config.Autoscaling.MinAllowed,
				"etcd": etcdMinimum(o, etcd.Main), "VerticalPodAutoscaler": scaled,
			} {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", component, diff)
				}
			}
			if diff := cmp.Diff(tc.minimum, autoscaling.MinAllowed); diff != "" {
				t.Errorf("the Shoot is changed (-want +got):\n%s", diff)
			}
		})
	}
}
