package kubeproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{
		"default": {
			KubernetesService: netip.MustParseAddr("100.64.0.1"), PodNetworks: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/16")}, APIServer: "api.a.b.example", CABundle: []byte("CA bundle"),
			Pools: []Pool{
				{Name: "large", Version: "1.36.3", Image: "registry.example/kube-proxy:v1.36.3"},
				{Name: "small", Version: "1.35.4", Image: "registry.example/kube-proxy:v1.35.4"},
			},
		},
		"ipv6-nftables": {
			PodNetworks: []netip.Prefix{netip.MustParsePrefix("2001:db8::/56"), netip.MustParsePrefix("10.4.0.0/16")},
			Mode:        corev1beta1.ProxyModeNFTables, FeatureGates: map[string]bool{"Some": true}, APIServer: "api.a.b.example",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
		})
	}
}

// TestConfiguration runs the real program in each version. It has to accept the configuration as it is: if the strict decoder refuses it, another one
// ignores what it does not know.
func TestConfiguration(t *testing.T) {
	env.EachKubernetes(t, func(t *testing.T, _ string, program func(string) string) {
		for _, mode := range []corev1beta1.ProxyMode{corev1beta1.ProxyModeIPTables, corev1beta1.ProxyModeIPVS, corev1beta1.ProxyModeNFTables} {
			t.Run(string(mode), func(t *testing.T) {
				config, err := Values{
					Mode: mode, APIServer: "api.example.com", FeatureGates: map[string]bool{"AllBeta": true},
					PodNetworks: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/16"), netip.MustParsePrefix("2001:db8::/56")},
				}.config()
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), keyConfig)
				if err := os.WriteFile(file, []byte(config.Data[keyConfig]), 0o600); err != nil {
					t.Fatal(err)
				}
				// It ends when it has read and validated its configuration.
				args := []string{"--config=" + file, "--hostname-override=node", "--v=2", "--write-config-to=" + file + ".out"}
				out, err := exec.CommandContext(t.Context(), program(Name), args...).CombinedOutput()
				if err != nil || strings.Contains(string(out), "lenient") {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	})
}

func TestFor(t *testing.T) {
	image := func(version, architecture string) (string, error) {
		if version == "1.2.3" {
			return "", errors.New("no image")
		}
		return "kube-proxy:v" + version + architecture, nil
	}
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Kubernetes.Version = "1.36.3"
	shoot.Spec.Networking = &corev1beta1.Networking{Services: new("100.64.0.0/13")}
	shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Mode: new(corev1beta1.ProxyModeIPVS)}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Name: "b"},
		{Name: "a", Kubernetes: &corev1beta1.WorkerKubernetes{Version: new("1.35.4")}, Machine: corev1beta1.Machine{Architecture: new("arm64")}},
	}
	node := func(pool, version string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			constants.WorkerPool: pool, constants.WorkerKubernetesVersion: version, corev1.LabelArchStable: "arm64",
		}}}
	}
	t.Run("pools of the shoot and of existing nodes", func(t *testing.T) {
		got, err := For(shoot, []corev1.Node{node("b", "1.36.3"), node("b", "1.35.4"), node("gone", "1.36.1"), {}}, image)
		if err != nil {
			t.Fatal(err)
		}
		want := Values{Mode: corev1beta1.ProxyModeIPVS, KubernetesService: netip.MustParseAddr("100.64.0.1"), Pools: []Pool{
			{Name: "a", Version: "1.35.4", Image: "kube-proxy:v1.35.4arm64"},
			{Name: "b", Version: "1.35.4", Image: "kube-proxy:v1.35.4"},
			{Name: "b", Version: "1.36.3", Image: "kube-proxy:v1.36.3"},
			{Name: "gone", Version: "1.36.1", Image: "kube-proxy:v1.36.1arm64"},
		}}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
			t.Errorf("For() (-want +got):\n%s", diff)
		}
	})
	// Users create Nodes in the shoot, and the DaemonSets are in the memory of the gardenlet.
	t.Run("labels of more pools than there can be are an error", func(t *testing.T) {
		nodes := make([]corev1.Node, 0, 2*maxPools+1)
		for i := range maxPools {
			nodes = append(nodes, node(fmt.Sprint(i), "1.36.3"), node(fmt.Sprint(i), "1.36.3"))
		}
		if got, err := For(shoot, nodes, image); err != nil || len(got.Pools) != maxPools+len(shoot.Spec.Provider.Workers) {
			t.Errorf("For() = %d pools, %v", len(got.Pools), err)
		}
		_, err := For(shoot, append(nodes, node("0", "1.35.4")), image)
		if diff := cmp.Diff([]corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}, errorcode.Of(err)); diff != "" {
			t.Errorf("codes of %v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("a version without image is an error", func(t *testing.T) {
		if _, err := For(shoot, []corev1.Node{node("b", "1.2.3")}, image); err == nil {
			t.Error("no error")
		}
	})
}

func TestEnabled(t *testing.T) {
	for name, tc := range map[string]struct {
		config *corev1beta1.KubeProxyConfig
		want   bool
	}{
		"not configured": {want: true},
		"by default":     {config: &corev1beta1.KubeProxyConfig{}, want: true},
		"enabled":        {config: &corev1beta1.KubeProxyConfig{Enabled: new(true)}, want: true},
		"disabled":       {config: &corev1beta1.KubeProxyConfig{Enabled: new(false)}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeProxy = tc.config
			if got := Enabled(shoot); got != tc.want {
				t.Errorf("Enabled() = %v, want %v", got, tc.want)
			}
		})
	}
}
