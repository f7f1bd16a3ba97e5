package values

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/infrastructure"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// The first run, before the status has the networks that the infrastructure has chosen, has the same networks as later ones: pods would be
// replaced otherwise.
func TestAllNetworks(t *testing.T) {
	desired := &corev1beta1.NetworkingStatus{Nodes: []string{"10.0.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"}}
	chosen := &extensionsv1alpha1.Infrastructure{}
	chosen.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{"10.1.0.0/16"}}
	older := &extensionsv1alpha1.Infrastructure{}
	older.Status.NodesCIDR = new("10.2.0.0/16")
	published, err := (&infrastructure.Result{Infrastructure: chosen}).Shoot(&corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Networking: desired}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		status *corev1beta1.NetworkingStatus
		infra  *extensionsv1alpha1.Infrastructure
		want   []string
	}{
		"nothing is chosen":          {desired, &extensionsv1alpha1.Infrastructure{}, []string{"10.0.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen":           {desired, chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen as before": {desired, older, []string{"10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"and published":              {published.Status.Networking, chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"the spec has none":          {nil, chosen, []string{"10.1.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Source{State: &observed.State{Shoot: &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Networking: tc.status}}}, Infrastructure: &infrastructure.Result{Infrastructure: tc.infra}}
			got, err := s.allNetworks()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
		})
	}
}

// All components have the networks that the infrastructure has chosen, in the first run, too.
func TestNetworksOfTheInfrastructure(t *testing.T) {
	clusters, o := stagetest.New(t), observedtest.State()
	o.Shoot.Spec.Kubernetes.Version = "1.36.3"
	o.Shoot.Spec.Networking, o.Shoot.Status.Networking = &corev1beta1.Networking{IPFamilies: []corev1beta1.IPFamily{"IPv6"}}, nil
	s := source(t, clusters, o)
	if o.NetworksKnown() {
		t.Error("networks are known before the infrastructure is reconciled")
	}
	chosen := &extensionsv1alpha1.Infrastructure{}
	chosen.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{
		Nodes: []string{"2001:db8:1::/64"}, Pods: []string{"2001:db8:2::/56"}, Services: []string{"2001:db8:4::/108"},
	}
	s.Infrastructure.Infrastructure = chosen
	apiServer, err := s.KubeAPIServer(1, kubeapiserver.Files{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := s.KubeControllerManager(1)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := s.KubeProxy(nil)
	if err != nil {
		t.Fatal(err)
	}
	system, err := s.CoreDNS()
	if err != nil {
		t.Fatal(err)
	}
	local, err := s.NodeLocalDNS()
	if err != nil {
		t.Fatal(err)
	}
	configs, err := s.OperatingSystemConfigs()
	if err != nil {
		t.Fatal(err)
	}
	contents, err := s.System(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"kube-apiserver": apiServer.ServiceNetworks, "address": apiServer.AdvertiseAddress, "kube-controller-manager": manager.PodNetworks,
		"its Services": manager.ServiceNetworks, "kube-proxy": fmt.Sprint(proxy.PodNetworks), "coredns": fmt.Sprint(system.Addresses),
		"node-local-dns": fmt.Sprint(local.ClusterDNS), "kubelet": fmt.Sprint(configs.ClusterDNS), "shoot-info": contents.Info.NodeNetworks,
	}
	services := []string{"2001:db8:4::/108"}
	want := map[string]any{
		"kube-apiserver": services, "address": "fd8f:6d53:b97a:1::1", "kube-controller-manager": []string{"2001:db8:2::/56"}, "its Services": services,
		"kube-proxy": "[2001:db8:2::/56]", "coredns": "[2001:db8:4::a]", "node-local-dns": "[2001:db8:4::a]", "kubelet": "[2001:db8:4::a]",
		"shoot-info": []string{"2001:db8:1::/64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("networks of components (-want +got):\n%s", diff)
	}
}

// A task that does not come after the task infrastructure fails.
func TestInfrastructureIsReadTooEarly(t *testing.T) {
	s := Source{State: observedtest.State(), Infrastructure: &infrastructure.Result{}}
	if got, err := s.allNetworks(); err == nil {
		t.Errorf("networks are %v", got)
	}
	if got, err := s.Infrastructure.ProviderStatus(); err == nil {
		t.Errorf("status is %v", got)
	}
}

func TestWorkerLosesTheSSHKey(t *testing.T) {
	o := observedtest.State()
	o.Shoot.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{Enabled: false}}
	s := source(t, stagetest.New(t), o)
	set, err := s.Worker(nil)
	if err != nil {
		t.Fatal(err)
	}
	worker := &extensionsv1alpha1.Worker{}
	worker.Spec.SSHPublicKey = []byte("key")
	set(worker)
	if worker.Spec.SSHPublicKey != nil {
		t.Errorf("the key is %q", worker.Spec.SSHPublicKey)
	}
}

func TestCores(t *testing.T) {
	o := observedtest.State()
	o.CloudProfile = &corev1beta1.CloudProfile{}
	o.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2")}, {Name: "large", CPU: resource.MustParse("64")}}
	o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Machine: corev1beta1.Machine{Type: "small"}, Minimum: 3, Maximum: 9},
		{Machine: corev1beta1.Machine{Type: "large"}, Minimum: 1},
		{Machine: corev1beta1.Machine{Type: "unknown"}, Minimum: 7},
	}
	if got := cores(o); got != 70 {
		t.Errorf("cores() = %d", got)
	}
}

// TestMachineSettings compares the creation timeout of a pool, of its own or of its machine type, and keeps the other settings.
func TestMachineSettings(t *testing.T) {
	minutes := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }
	profile := &corev1beta1.CloudProfile{Spec: corev1beta1.CloudProfileSpec{MachineTypes: []corev1beta1.MachineType{
		{Name: "slow", MachineControllerManager: &corev1beta1.CloudProfileMachineControllerManagerSettings{MachineCreationTimeout: minutes(40)}},
		{Name: "plain"},
	}}}
	for name, tc := range map[string]struct {
		machine string
		own     *corev1beta1.MachineControllerManagerSettings
		want    *corev1beta1.MachineControllerManagerSettings
	}{
		"of the machine type": {machine: "slow", want: &corev1beta1.MachineControllerManagerSettings{MachineCreationTimeout: minutes(40)}},
		"of the machine type, with other settings": {
			machine: "slow", own: &corev1beta1.MachineControllerManagerSettings{MachineDrainTimeout: minutes(5)},
			want: &corev1beta1.MachineControllerManagerSettings{MachineDrainTimeout: minutes(5), MachineCreationTimeout: minutes(40)},
		},
		"of the pool": {
			machine: "slow", own: &corev1beta1.MachineControllerManagerSettings{MachineCreationTimeout: minutes(10)},
			want: &corev1beta1.MachineControllerManagerSettings{MachineCreationTimeout: minutes(10)},
		},
		"none":                    {machine: "plain"},
		"an unknown machine type": {machine: "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			worker := &corev1beta1.Worker{Machine: corev1beta1.Machine{Type: tc.machine}, MachineControllerManager: tc.own}
			before := tc.own.DeepCopy()
			if diff := cmp.Diff(tc.want, machineSettings(profile, worker)); diff != "" {
				t.Errorf("machineSettings() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.own); diff != "" {
				t.Errorf("the Shoot was changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNodeImages compares the images that nodes take files from: those for the architecture of the machines of the pool.
func TestNodeImages(t *testing.T) {
	vector := imagevector.Vector{
		{Name: "gardener", Repository: new("gardener")},
		{Name: "pause", Repository: new("pause"), Tag: new("3.10")},
		{Name: "pause", Repository: new("pause-arm64"), Tag: new("3.10"), Architectures: []string{"arm64"}},
		{Name: "hyperkube", Repository: new("hyperkube"), Architectures: []string{"amd64"}},
		{Name: "hyperkube", Repository: new("hyperkube-arm64"), Architectures: []string{"arm64"}},
	}
	for architecture, want := range map[string][]string{
		"":      {"gardener:v1.2.3", "pause:3.10", "hyperkube:v1.36.1"},
		"amd64": {"gardener:v1.2.3", "pause:3.10", "hyperkube:v1.36.1"},
		"arm64": {"gardener:v1.2.3", "pause-arm64:3.10", "hyperkube-arm64:v1.36.1"},
	} {
		p := operatingsystemconfig.Pool{}
		if architecture != "" {
			p.Worker.Machine.Architecture = &architecture
		}
		if err := (Source{Images: vector, GardenerVersion: "v1.2.3"}).nodeImages(&p, "1.36.1"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, []string{p.NodeAgentImage, p.SandboxImage, p.KubeletImage}); diff != "" {
			t.Errorf("images of a pool of %q (-want +got):\n%s", architecture, diff)
		}
	}
	p := operatingsystemconfig.Pool{Worker: corev1beta1.Worker{Name: "p", Machine: corev1beta1.Machine{Architecture: new("arm64")}}}
	if err := (Source{Images: vector[:4]}).nodeImages(&p, "1.36.1"); err == nil || !strings.Contains(err.Error(), `worker pool "p"`) {
		t.Errorf("without an image for the architecture: %v", err)
	}
}

// TestNodeLabels compares the labels of nodes. Those of node-role.kubernetes.io a kubelet may not set: machine-controller-manager does.
func TestNodeLabels(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Kubernetes.Version = "1.36.1"
	common := map[string]string{
		"node.kubernetes.io/role": "node", "kubernetes.io/arch": "amd64", "worker.gardener.cloud/pool": "p", "worker.garden.sapcloud.io/group": "p",
		"worker.gardener.cloud/kubernetes-version": "1.36.1", "worker.gardener.cloud/gardener-node-agent-secret-name": "gardener-node-agent-p-h",
		"worker.gardener.cloud/system-components": "true", "networking.gardener.cloud/node-local-dns-enabled": "false",
	}
	for name, tc := range map[string]struct {
		worker corev1beta1.Worker
		more   map[string]string
	}{
		"plain": {},
		"labels of the user": {
			worker: corev1beta1.Worker{Labels: map[string]string{"node-role.kubernetes.io/batch": "", "a": "b", "node.kubernetes.io/role": "own"}},
			more:   map[string]string{"node-role.kubernetes.io/batch": "", "a": "b"},
		},
		"for the control plane": {
			worker: corev1beta1.Worker{ControlPlane: &corev1beta1.WorkerControlPlane{}}, more: map[string]string{"node-role.kubernetes.io/control-plane": ""},
		},
		"another architecture, without system components, with a runtime": {
			worker: corev1beta1.Worker{
				Machine: corev1beta1.Machine{Architecture: new("arm64")}, SystemComponents: &corev1beta1.WorkerSystemComponents{},
				CRI: &corev1beta1.CRI{Name: "containerd", ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}},
			},
			more: map[string]string{
				"kubernetes.io/arch": "arm64", "worker.gardener.cloud/system-components": "false", "worker.gardener.cloud/cri-name": "containerd",
				"containerruntime.worker.gardener.cloud/gvisor": "true",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.worker.Name = "p"
			want := maps.Clone(common)
			maps.Copy(want, tc.more)
			if diff := cmp.Diff(want, nodeLabels(shoot, &tc.worker, "h")); diff != "" {
				t.Errorf("nodeLabels() (-want +got):\n%s", diff)
			}
		})
	}
}
