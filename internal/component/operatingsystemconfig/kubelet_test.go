package operatingsystemconfig

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/test/env"
)

// refused returns why a kubelet would refuse a configuration, as far as Shoots can set it.
func refused(t *testing.T, rendered string) []string {
	t.Helper()
	c := &kubeletconfigv1beta1.KubeletConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(rendered), c); err != nil {
		t.Fatal(err)
	}
	youngest := c.ImageMinimumGCAge.Duration
	if youngest == 0 {
		youngest = 2 * time.Minute
	}
	certificates, set := c.FeatureGates["RotateKubeletServerCertificate"]
	if beta, ok := c.FeatureGates["AllBeta"]; !set {
		certificates = !ok || beta
	}
	serial := c.SerializeImagePulls == nil || *c.SerializeImagePulls
	var why []string
	for reason, broken := range map[string]bool{
		"images are removed below what they are kept": *c.ImageGCLowThresholdPercent >= *c.ImageGCHighThresholdPercent,
		"images are too old before they are removed":  c.ImageMaximumGCAge.Duration > 0 && c.ImageMaximumGCAge.Duration <= youngest,
		"no certificate for the server":               c.ServerTLSBootstrap && !certificates,
		"pulls are parallel, and one after the other": serial && c.MaxParallelImagePulls != nil && *c.MaxParallelImagePulls > 1,
		"a list without the policy":                   len(c.PreloadedImagesVerificationAllowlist) > 0 && c.ImagePullCredentialsVerificationPolicy != kubeletconfigv1beta1.NeverVerifyAllowlistedImages,
		"less than two log files":                     c.ContainerLogMaxFiles != nil && *c.ContainerLogMaxFiles < 2,
	} {
		if broken {
			why = append(why, reason)
		}
	}
	for _, limits := range []map[string]string{c.EvictionHard, c.EvictionSoft} {
		for signal, limit := range limits {
			if err := badLimit(limit); err != nil {
				why = append(why, fmt.Sprintf("%s: %v", signal, err))
			}
		}
	}
	for signal := range c.EvictionSoft {
		if _, ok := c.EvictionSoftGracePeriod[signal]; !ok {
			why = append(why, signal+" has no grace period")
		}
	}
	slices.Sort(why)
	return why
}

// badLimit parses an eviction threshold as a kubelet does.
func badLimit(limit string) error {
	if share, ok := strings.CutSuffix(limit, "%"); ok {
		if percent, err := strconv.ParseFloat(share, 32); err != nil || percent < 0 || percent > 100 {
			return fmt.Errorf("%q is not a percentage", limit)
		}
		return nil
	}
	if quantity, err := resource.ParseQuantity(limit); err != nil || quantity.Sign() <= 0 {
		return fmt.Errorf("%q is not a quantity", limit)
	}
	return nil
}

// Kubelets have to start with all values that the API accepts, and with thresholds from before the API refused them.
func TestKubeletsStartWithAcceptedValues(t *testing.T) {
	gates := func(gates map[string]bool) corev1beta1.KubeletConfig {
		return corev1beta1.KubeletConfig{KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: gates}}
	}
	hard := func(limits corev1beta1.KubeletConfigEviction) corev1beta1.KubeletConfig {
		return corev1beta1.KubeletConfig{EvictionHard: &limits}
	}
	soft := func(limit string) corev1beta1.KubeletConfig {
		return corev1beta1.KubeletConfig{EvictionSoft: &corev1beta1.KubeletConfigEviction{NodeFSAvailable: &limit}}
	}
	age := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct {
		config          corev1beta1.KubeletConfig
		refused, breaks bool // refused by the API; a kubelet does not start with it
	}{
		"nothing":                           {},
		"no certificates":                   {config: gates(map[string]bool{"RotateKubeletServerCertificate": false})},
		"no beta features":                  {config: gates(map[string]bool{"AllBeta": false})},
		"no beta features, no certificates": {config: gates(map[string]bool{"AllBeta": false, "RotateKubeletServerCertificate": false})},
		"high 40":                           {config: corev1beta1.KubeletConfig{ImageGCHighThresholdPercent: new(int32(40))}, refused: true, breaks: true},
		"high 41":                           {config: corev1beta1.KubeletConfig{ImageGCHighThresholdPercent: new(int32(41))}},
		"low 50":                            {config: corev1beta1.KubeletConfig{ImageGCLowThresholdPercent: new(int32(50))}, refused: true, breaks: true},
		"low 49":                            {config: corev1beta1.KubeletConfig{ImageGCLowThresholdPercent: new(int32(49))}},
		"low is high":                       {config: corev1beta1.KubeletConfig{ImageGCLowThresholdPercent: new(int32(60)), ImageGCHighThresholdPercent: new(int32(60))}, refused: true, breaks: true},
		"oldest 2m":                         {config: corev1beta1.KubeletConfig{ImageMaximumGCAge: age(2 * time.Minute)}, refused: true, breaks: true},
		"oldest 2m, youngest 0":             {config: corev1beta1.KubeletConfig{ImageMaximumGCAge: age(2 * time.Minute), ImageMinimumGCAge: age(0)}, refused: true, breaks: true},
		"oldest 2m, youngest 1m":            {config: corev1beta1.KubeletConfig{ImageMaximumGCAge: age(2 * time.Minute), ImageMinimumGCAge: age(time.Minute)}},
		"oldest 3m":                         {config: corev1beta1.KubeletConfig{ImageMaximumGCAge: age(3 * time.Minute)}},
		"oldest 0, youngest 1h":             {config: corev1beta1.KubeletConfig{ImageMaximumGCAge: age(0), ImageMinimumGCAge: age(time.Hour)}},
		"inodes abc":                        {config: hard(corev1beta1.KubeletConfigEviction{NodeFSInodesFree: new("abc")})},
		"inodes 5 %":                        {config: hard(corev1beta1.KubeletConfigEviction{NodeFSInodesFree: new("5 %")})},
		"inodes 5%":                         {config: hard(corev1beta1.KubeletConfigEviction{NodeFSInodesFree: new("5%")})},
		"inodes 1k":                         {config: hard(corev1beta1.KubeletConfigEviction{NodeFSInodesFree: new("1k")})},
		"memory 0":                          {config: hard(corev1beta1.KubeletConfigEviction{MemoryAvailable: new("0")}), refused: true},
		"memory 0Mi":                        {config: hard(corev1beta1.KubeletConfigEviction{MemoryAvailable: new("0Mi")}), refused: true},
		"memory -1Mi":                       {config: hard(corev1beta1.KubeletConfigEviction{MemoryAvailable: new("-1Mi")}), refused: true},
		"image inodes 100.5%":               {config: hard(corev1beta1.KubeletConfigEviction{ImageFSInodesFree: new("100.5%")}), refused: true},
		"image inodes 100.0%":               {config: hard(corev1beta1.KubeletConfigEviction{ImageFSInodesFree: new("100.0%")})},
		"soft 0":                            {config: soft("0"), refused: true},
		"soft 0%":                           {config: soft("0%")},
	} {
		t.Run(name, func(t *testing.T) {
			pool := Pool{Worker: worker()}
			pool.Worker.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &tc.config}
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.Version, shoot.Spec.Provider.Workers = "1.36.3", []corev1beta1.Worker{pool.Worker}
			var invalid []string
			for _, err := range core.ValidateShoot(shoot, core.Options{}) {
				if strings.HasPrefix(err.Field, "spec.provider.workers[0].kubernetes.kubelet") {
					invalid = append(invalid, err.Error())
				}
			}
			if (len(invalid) > 0) != tc.refused {
				t.Errorf("the API says %q", invalid)
			}
			if why := refused(t, kubeletFile(t, values(pool))); (len(why) > 0) != tc.breaks {
				t.Errorf("a kubelet says %q", why)
			}
		})
	}
}

// TestKubeletAcceptsWhatItIsGiven runs the real kubelet in each version, which has to accept all flags and its configuration: then it only fails because
// it has no kubeconfig. The API refuses what a version does not have.
func TestKubeletAcceptsWhatItIsGiven(t *testing.T) {
	second := &metav1.Duration{Duration: time.Second}
	settings := &corev1beta1.KubeletConfig{
		KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"AllBeta": true, "NodeSwap": true}},
		CPUCFSQuota:      new(false), CPUManagerPolicy: new("static"), MaxPods: new(int32(50)), PodPidsLimit: new(int64(1000)), FailSwapOn: new(false),
		KubeReserved:      &corev1beta1.KubeletConfigReserved{EphemeralStorage: resource.NewQuantity(1<<30, resource.BinarySI)},
		ImageMinimumGCAge: second, ImageMaximumGCAge: &metav1.Duration{Duration: time.Hour}, MaxParallelImagePulls: new(int32(5)),
		RegistryPullQPS: new(int32(10)), RegistryBurst: new(int32(20)), SeccompDefault: new(true), ContainerLogMaxFiles: new(int32(3)),
		ContainerLogMaxSize: resource.NewQuantity(1<<20, resource.BinarySI), ProtectKernelDefaults: new(false), StreamingConnectionIdleTimeout: &metav1.Duration{Duration: time.Minute},
		MemorySwap: &corev1beta1.MemorySwapConfiguration{SwapBehavior: new(corev1beta1.LimitedSwap)}, SingleProcessOOMKill: new(true),
		EvictionMaxPodGracePeriod: new(int32(10)), EvictionPressureTransitionPeriod: second,
	}
	verifying := &corev1beta1.KubeletConfig{
		ImagePullCredentialsVerificationPolicy: new(corev1beta1.NeverVerifyAllowlistedImages), PreloadedImagesVerificationAllowlist: []string{"registry.example.com/pause"},
	}
	withoutBeta := verifying.DeepCopy()
	withoutBeta.FeatureGates = map[string]bool{"AllBeta": false}
	const always, never = "v1.0", "v2.0"
	env.EachKubernetes(t, func(t *testing.T, version string, program func(string) string) {
		for name, tc := range map[string]struct {
			config *corev1beta1.KubeletConfig
			since  string
		}{
			"default": {nil, always}, "settings": {settings, always}, "verifying": {verifying, "v1.35"}, "verifying without beta features": {withoutBeta, never},
		} {
			t.Run(name, func(t *testing.T) {
				shoot := &corev1beta1.Shoot{}
				shoot.Spec.Kubernetes.Version, shoot.Spec.Kubernetes.Kubelet, shoot.Spec.Provider.Workers = version, tc.config, []corev1beta1.Worker{worker()}
				var invalid []string
				for _, err := range core.ValidateShoot(shoot, core.Options{}) {
					if strings.HasPrefix(err.Field, "spec.kubernetes.kubelet") {
						invalid = append(invalid, err.Error())
					}
				}
				v := values(Pool{Worker: worker()})
				v.KubernetesVersion, v.Kubelet = version, tc.config
				dir := t.TempDir()
				ca, _, err := cert.GenerateSelfSignedCertKey("ca", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, filepath.Base(KubeletCAFile)), ca, 0o600); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, "config")
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(kubeletFile(t, v), KubeletDir, dir)), 0o600); err != nil {
					t.Fatal(err)
				}
				_, command, _ := strings.Cut(*kubeletUnit(&v, &v.Pools[0]).Content, "\nExecStart=")
				command, _, _ = strings.Cut(command, "\nRestart=")
				command = strings.NewReplacer(KubeletDir+"/config/kubelet", file, KubeletDir, dir, "$KUBELET_EXTRA_ARGS", "--root-dir="+dir).Replace(command)
				args := strings.Split(command, flagSeparator)
				out, err := exec.CommandContext(t.Context(), program("kubelet"), args[1:]...).CombinedOutput()
				accepted, want := strings.Contains(string(out), "unable to load bootstrap kubeconfig: stat "+dir), semver.Compare("v"+version, tc.since) >= 0
				if err == nil || accepted != want || (len(invalid) == 0) != want {
					t.Errorf("the API says %q, the kubelet %v: %s", invalid, err, out[max(0, len(out)-1000):])
				}
			})
		}
	})
}

// Kubelets of pools whose machines are not replaced would not start again: "configured policy "none" differs from state checkpoint policy "static"".
func TestKubeletsRemoveStateOfAnotherCPUManagerPolicy(t *testing.T) {
	const static = `{"policyName":"static","defaultCpuSet":"1-3","entries":{"a":{"none":"0"}},"checksum":1}`
	for name, tc := range map[string]struct {
		policy *string
		state  string
		kept   bool
	}{
		"the same":          {policy: new("static"), state: static, kept: true},
		"another":           {policy: new("none"), state: static},
		"the default":       {state: static},
		"the other way":     {policy: new("static"), state: `{"policyName":"none","defaultCpuSet":"","checksum":2}`},
		"one that is empty": {state: ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "cpu_manager_state")
			if err := os.WriteFile(file, []byte(tc.state), 0o600); err != nil {
				t.Fatal(err)
			}
			v := values(Pool{Worker: worker()})
			v.Kubelet = &corev1beta1.KubeletConfig{CPUManagerPolicy: tc.policy}
			_, command, _ := strings.Cut(*kubeletUnit(&v, &v.Pools[0]).Content, "ExecStartPre=/bin/sh -c '")
			command, _, quoted := strings.Cut(command, "'\n")
			if !quoted || strings.ContainsAny(command, "'\"\\$%\n") {
				t.Fatalf("systemd takes the command for another one: %s", command)
			}
			for range 2 { // the second time, it may not exist
				out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, KubeletDir, dir)).CombinedOutput()
				if err != nil || len(out) > 0 {
					t.Errorf("%s: %v: %s", command, err, out)
				}
			}
			if _, err := os.Stat(file); (err == nil) != tc.kept {
				t.Errorf("the state exists: %v, %v", err == nil, err)
			}
		})
	}
}

// The admission plugin ShootResourceReservation creates such pools.
func TestPoolsThatOnlyReserveHaveTheShootsSettings(t *testing.T) {
	pool := Pool{Worker: worker()}
	pool.Worker.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{
		FailSwapOn: new(true), KubeReserved: &corev1beta1.KubeletConfigReserved{PID: resource.NewQuantity(7, resource.DecimalSI)},
	}}
	v := values(pool)
	v.Kubelet = &corev1beta1.KubeletConfig{MaxPods: new(int32(50)), FailSwapOn: new(false), CPUManagerPolicy: new("static")}
	c := &kubeletconfigv1beta1.KubeletConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(kubeletFile(t, v)), c); err != nil {
		t.Fatal(err)
	}
	if c.MaxPods != 50 || *c.FailSwapOn || c.CPUManagerPolicy != "static" || c.KubeReserved["pid"] != "7" {
		t.Errorf("the kubelet has %d pods, failSwapOn %v, CPU manager %s, and reserves %v", c.MaxPods, *c.FailSwapOn, c.CPUManagerPolicy, c.KubeReserved)
	}
	if unit := *kubeletUnit(&v, &pool).Content; !strings.Contains(unit, ".static.") {
		t.Errorf("the unit has another CPU manager policy: %s", unit)
	}
}

// Machine images and extensions add flags of the kubelet by environment variables, and webhooks of extensions change those in the unit: they split the
// command into lines, and find a flag by its prefix. In clusters that prefer IPv6, so do nodes.
func TestKubeletFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		dns  string
		more []string
	}{
		"IPv4": {dns: "100.64.0.10"}, "IPv6": {dns: "fd00::a", more: []string{`--node-ip="::"`}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := Pool{Worker: corev1beta1.Worker{Name: "p"}, Hash: "0", Labels: map[string]string{"example.com/a": "b", "node-role.kubernetes.io/x": ""}}
			v := values(pool)
			v.ClusterDNS = []net.IP{net.ParseIP(tc.dns)}
			unit := *kubeletUnit(&v, &pool).Content
			if want := "\nEnvironmentFile=-/etc/environment\nEnvironmentFile=-/var/lib/kubelet/extra_args\n"; !strings.Contains(unit, want) {
				t.Errorf("the unit lacks %q:\n%s", want, unit)
			}
			_, command, _ := strings.Cut(unit, "\nExecStart=")
			command, _, _ = strings.Cut(command, "\nRestart=")
			want := slices.Concat([]string{
				"/opt/bin/kubelet", "--bootstrap-kubeconfig=/var/lib/kubelet/kubeconfig-bootstrap", "--config=/var/lib/kubelet/config/kubelet",
				"--kubeconfig=/var/lib/kubelet/kubeconfig-real", "--node-labels=example.com/a=b", "--node-labels=worker.garden.sapcloud.io/group=p",
				"--node-labels=worker.gardener.cloud/cri-name=containerd", "--node-labels=worker.gardener.cloud/gardener-node-agent-secret-name=gardener-node-agent-p-0",
				"--node-labels=worker.gardener.cloud/kubernetes-version=" + v.KubernetesVersion, "--node-labels=worker.gardener.cloud/pool=p",
				"--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "--runtime-cgroups=/system.slice/containerd.service", "--v=2",
			}, tc.more, []string{"$KUBELET_EXTRA_ARGS"})
			if diff := cmp.Diff(want, strings.Split(command, " \\\n    ")); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
