package operatingsystemconfig

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

func worker() corev1beta1.Worker {
	return corev1beta1.Worker{
		Name:    "small",
		Machine: corev1beta1.Machine{Type: "m5.large", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}},
		CRI:     &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD},
	}
}

func values(pools ...Pool) Values {
	return Values{
		Namespace: "shoot--dev--crazy-botany", KubernetesVersion: "1.36.3", APIServerURL: "https://api.crazy-botany.dev.internal.example.com",
		ClusterCABundle: []byte("cluster CA\n"), KubeletCABundle: []byte("kubelet CA\n"), ClusterDNS: []net.IP{net.ParseIP("100.64.0.10")},
		Pools: pools,
	}
}

func TestObjects(t *testing.T) {
	plain := Pool{
		Worker: worker(), Hash: "0123456789abcdef", NodeAgentImage: "example.com/gardener:v1", SandboxImage: "example.com/pause:3.10",
		KubeletImage: "example.com/kubelet:v1.36.3",
	}
	full := plain
	full.Worker.Name, full.Hash = "large", ""
	full.Worker.CABundle = new("pool CA\n")
	full.Worker.Sysctls = map[string]string{"vm.max_map_count": "300000"}
	full.Worker.UpdateStrategy = new(corev1beta1.AutoInPlaceUpdate)
	full.Worker.Kubernetes = &corev1beta1.WorkerKubernetes{Version: new("1.35.4")}
	full.Labels = map[string]string{"kubernetes.io/arch": "amd64", "node.kubernetes.io/role": "worker", "color": "green"}
	full.KubeletDataVolumeSize = new(int64(50 << 30))
	full.Registries = []extensionsv1alpha1.RegistryConfig{{Upstream: "docker.io", Hosts: []extensionsv1alpha1.RegistryHost{{URL: "https://mirror.example.com"}}}}
	v := values(full)
	v.SSHPublicKeys = []string{"ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"}
	v.Pools[0].Rotation.CertificateAuthorities = &metav1.Time{Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for name, v := range map[string]Values{"plain.yaml": values(plain), "full.yaml": v} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name, objects, extensionsv1alpha1.AddToScheme)
			for _, object := range objects {
				checkAgentConfig(t, object.(*extensionsv1alpha1.OperatingSystemConfig))
			}
		})
	}
	if _, err := Objects(values(Pool{Worker: corev1beta1.Worker{Name: "x"}})); err == nil {
		t.Error("a pool without image was rendered")
	}
}

// checkAgentConfig checks that the configuration file of the node agent is valid.
func checkAgentConfig(t *testing.T, osc *extensionsv1alpha1.OperatingSystemConfig) {
	t.Helper()
	kind := configfile.Kind[nodeagentconfigv1alpha1.NodeAgentConfiguration]{
		AddToScheme: nodeagentconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateNodeAgent,
	}
	paths := map[string]bool{}
	for _, file := range osc.Spec.Files {
		paths[file.Path] = true
		if file.Path == NodeAgentConfigFile {
			if _, err := kind.Decode([]byte(file.Content.Inline.Data)); err != nil {
				t.Errorf("configuration of the node agent in %s: %v", osc.Name, err)
			}
		}
	}
	for _, unit := range osc.Spec.Units {
		for _, path := range unit.FilePaths {
			if !paths[path] {
				t.Errorf("unit %s of %s is restarted for %s, which is no file of it", unit.Name, osc.Name, path)
			}
		}
	}
}

func TestKubeletConfiguration(t *testing.T) {
	quantity, seconds := resource.MustParse("1Gi"), &metav1.Duration{Duration: 30 * time.Second}
	v := values()
	v.ClusterDomain = "cluster.local"
	data, err := kubeletConfiguration(&v, &corev1beta1.KubeletConfig{
		KubernetesConfig:                       corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"NodeSwap": true}},
		CPUCFSQuota:                            new(false),
		CPUManagerPolicy:                       new("static"),
		EvictionHard:                           &corev1beta1.KubeletConfigEviction{MemoryAvailable: new("1%"), NodeFSInodesFree: new("2%")},
		EvictionSoft:                           &corev1beta1.KubeletConfigEviction{ImageFSAvailable: new("3%"), ImageFSInodesFree: new("4%"), NodeFSAvailable: new("5%")},
		EvictionMaxPodGracePeriod:              new(int32(7)),
		EvictionMinimumReclaim:                 &corev1beta1.KubeletConfigEvictionMinimumReclaim{NodeFSAvailable: &quantity},
		EvictionSoftGracePeriod:                &corev1beta1.KubeletConfigEvictionSoftGracePeriod{MemoryAvailable: seconds},
		EvictionPressureTransitionPeriod:       seconds,
		MaxPods:                                new(int32(250)),
		PodPidsLimit:                           new(int64(1000)),
		FailSwapOn:                             new(false),
		KubeReserved:                           &corev1beta1.KubeletConfigReserved{Memory: &quantity, EphemeralStorage: &quantity},
		ImageGCHighThresholdPercent:            new(int32(60)),
		ImageGCLowThresholdPercent:             new(int32(30)),
		SerializeImagePulls:                    new(false),
		RegistryPullQPS:                        new(int32(8)),
		RegistryBurst:                          new(int32(9)),
		SeccompDefault:                         new(true),
		ContainerLogMaxSize:                    &quantity,
		ContainerLogMaxFiles:                   new(int32(3)),
		ProtectKernelDefaults:                  new(false),
		StreamingConnectionIdleTimeout:         seconds,
		MemorySwap:                             &corev1beta1.MemorySwapConfiguration{SwapBehavior: new(corev1beta1.LimitedSwap)},
		MaxParallelImagePulls:                  new(int32(4)),
		ImageMinimumGCAge:                      seconds,
		ImageMaximumGCAge:                      &metav1.Duration{Duration: time.Hour},
		SingleProcessOOMKill:                   new(true),
		ImagePullCredentialsVerificationPolicy: new(corev1beta1.NeverVerifyAllowlistedImages),
		PreloadedImagesVerificationAllowlist:   []string{"example.com/a"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "kubelet.yaml", string(data))
	if why := refused(t, string(data)); why != nil {
		t.Errorf("a kubelet says %q", why)
	}
}

func TestPoolHash(t *testing.T) {
	hash := func(version HashVersion, change func(*corev1beta1.Worker), kubernetes string, shoot *corev1beta1.KubeletConfig, dnsCache bool, rotation Rotation) string {
		t.Helper()
		w := worker()
		change(&w)
		h, err := PoolHash(version, &w, kubernetes, shoot, dnsCache, rotation)
		if err != nil || len(h) != 16 {
			t.Fatalf("PoolHash() = %q, %v", h, err)
		}
		return h
	}
	same := func(*corev1beta1.Worker) {}
	at := Rotation{CertificateAuthorities: &metav1.Time{Time: time.Unix(1, 0)}}
	static := &corev1beta1.KubeletConfig{CPUManagerPolicy: new("static")}
	reserving := func(w *corev1beta1.Worker) {
		w.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{KubeReserved: &corev1beta1.KubeletConfigReserved{PID: new(resource.MustParse("20k"))}}}
	}
	for name, tc := range map[string]struct {
		before, after  func(*corev1beta1.Worker)
		kubernetes     string
		kubelet        *corev1beta1.KubeletConfig
		dnsCache       bool
		rotation       Rotation
		rolls1, rolls2 bool
	}{
		"nothing":             {},
		"patch version":       {kubernetes: "1.36.4"},
		"minor version":       {kubernetes: "1.37.0", rolls1: true, rolls2: true},
		"version of the pool": {after: func(w *corev1beta1.Worker) { w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: new("1.35.4")} }, rolls1: true, rolls2: true},
		"image":               {after: func(w *corev1beta1.Worker) { w.Machine.Image.Version = new("2") }, rolls1: true, rolls2: true},
		"machine type":        {after: func(w *corev1beta1.Worker) { w.Machine.Type = "big" }, rolls2: true},
		"volume":              {after: func(w *corev1beta1.Worker) { w.Volume = &corev1beta1.Volume{VolumeSize: "20Gi"} }, rolls2: true},
		"number of machines":  {after: func(w *corev1beta1.Worker) { w.Maximum = 100 }},
		"labels":              {after: func(w *corev1beta1.Worker) { w.Labels = map[string]string{"a": "b"} }},
		"CPU manager":         {kubelet: static, rolls2: true},
		"CPU manager of another pool": {before: func(w *corev1beta1.Worker) {
			w.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{}}
		}, after: func(w *corev1beta1.Worker) {
			w.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{}}
		}, kubelet: static},
		// Kubelets got it without new machines.
		"CPU manager of a pool that only reserves": {before: reserving, after: reserving, kubelet: static},
		"another setting of kubelets":              {kubelet: &corev1beta1.KubeletConfig{CPUManagerPolicy: new("none"), MaxPods: new(int32(1))}},
		"DNS cache":                                {dnsCache: true, rolls1: true, rolls2: true},
		"CA rotation":                              {rotation: at, rolls1: true, rolls2: true},
		"requested rollout":                        {rotation: Rotation{Rollout: &metav1.Time{Time: time.Unix(1, 0)}}, rolls1: true, rolls2: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.before == nil {
				tc.before = same
			}
			if tc.after == nil {
				tc.after = same
			}
			if tc.kubernetes == "" {
				tc.kubernetes = "1.36.3"
			}
			for version, rolls := range map[HashVersion]bool{HashVersion1: tc.rolls1, HashVersion2: tc.rolls2} {
				before := hash(version, tc.before, "1.36.3", nil, false, Rotation{})
				if after := hash(version, tc.after, tc.kubernetes, tc.kubelet, tc.dnsCache, tc.rotation); (after != before) != rolls {
					t.Errorf("version %d: %s, then %s; want another one: %v", version, before, after, rolls)
				}
			}
		})
	}
	inPlace := &corev1beta1.Worker{Name: "x", UpdateStrategy: new(corev1beta1.AutoInPlaceUpdate)}
	if got, err := PoolHash(LatestHashVersion, inPlace, "1.36.3", nil, false, at); got != "" || err != nil {
		t.Errorf("the hash of a pool that is updated in place is %q, %v", got, err)
	}
	if _, err := PoolHash(LatestHashVersion, &corev1beta1.Worker{Name: "x"}, "new", nil, false, Rotation{}); err == nil {
		t.Error("an invalid version was accepted")
	}
}

func TestNames(t *testing.T) {
	const hash = "0123456789abcdef"
	for _, h := range []string{hash, ""} {
		if got := HashOf("a-b", Name("a-b", h, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)); got != h {
			t.Errorf("the hash %q became %q", h, got)
		}
	}
	for secret, want := range map[string]bool{
		SecretName("a", ""): true, SecretName("a", hash): true,
		SecretName("a-b", ""): false, SecretName("a-b", hash): false, SecretName("ab", ""): false, "gardener-node-agent-a-": false, "other": false,
	} {
		if got := IsSecretOf("a", secret); got != want {
			t.Errorf("IsSecretOf(%q, %q) = %t", "a", secret, got)
		}
	}
}

func TestNodeAgentSecret(t *testing.T) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "12"},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{Files: []extensionsv1alpha1.File{
			{Path: "/a", Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "s", DataKey: "k"}}},
		}},
		Status: extensionsv1alpha1.OperatingSystemConfigStatus{ExtensionUnits: []extensionsv1alpha1.Unit{{Name: "u.service"}}},
	}
	secret, err := NodeAgentSecret("small", "abc", osc, func(name, key string) ([]byte, error) { return []byte(name + key), nil })
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "secret.yaml", []client.Object{secret.DeepCopy()})
	if osc.Spec.Files[0].Content.SecretRef == nil {
		t.Error("the configuration itself was changed")
	}
	osc.ResourceVersion = "13"
	again, err := NodeAgentSecret("small", "abc", osc, func(name, key string) ([]byte, error) { return []byte(name + key), nil })
	if diff := cmp.Diff(secret, again); diff != "" || err != nil {
		t.Errorf("another resource version gives another Secret (%v):\n%s", err, diff)
	}
	gone := errors.New("gone")
	if _, err := NodeAgentSecret("small", "abc", osc, func(string, string) ([]byte, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("error is %v", err)
	}
	if _, err := NodeAgentSecret("small", "abc", osc, nil); err == nil {
		t.Error("a Secret that cannot be read was no error")
	}
	if _, err := NodeAgentSecret("small", "abc", osc, func(string, string) ([]byte, error) { return nil, nil }); err == nil {
		t.Error("a key that a Secret does not have was no error")
	}
}

// A kubelet refuses to start with a soft limit that has no grace period.
func TestSoftLimitsWithoutGraceHaveAPeriod(t *testing.T) {
	v := values(Pool{Worker: worker()})
	v.Kubelet = &corev1beta1.KubeletConfig{EvictionSoftGracePeriod: &corev1beta1.KubeletConfigEvictionSoftGracePeriod{MemoryAvailable: &metav1.Duration{}}}
	if why := refused(t, kubeletFile(t, v)); why != nil {
		t.Errorf("a kubelet says %q", why)
	}
}

func TestAccess(t *testing.T) {
	golden.Objects(t, "access.yaml", Access(AccessValues{SecretNames: []string{"b", "a"}}))
	golden.Objects(t, "access-authorizer.yaml", Access(AccessValues{Authorizer: true, SecretNames: []string{"a"}}))
}

// Debian and its relatives have the option, others have the directory /etc/pki/trust/anchors.
func TestMachinesRemoveCAsOfThePool(t *testing.T) {
	const restart = "systemctl try-restart containerd.service\n"
	for name, tc := range map[string]struct {
		commands, options string
		trusts            []string
		anchors           string
	}{
		"with an option for the directory": {
			commands: "update-ca-certificates # --localcertsdir", options: "update-ca-certificates --localcertsdir DIR/var/lib/ca-certificates-local",
			trusts: []string{"DIR/var/lib/ca-certificates-local/ROOTcerts.crt", "DIR/var/lib/ca-certificates-local/image/of-the-image.crt"},
		},
		"without": {
			commands: "update-ca-certificates", options: "update-ca-certificates", trusts: []string{"DIR/var/lib/ca-certificates-local/ROOTcerts.crt"},
		},
		"with anchors": {
			commands: "update-ca-trust", options: "update-ca-trust", anchors: "gardener-ROOTcerts.crt",
			trusts: []string{"DIR/etc/pki/ca-trust/source/anchors/gardener-ROOTcerts.crt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			script := updateCAs
			for _, dir := range []string{"/var/lib/ca-certificates-local", "/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors", "/var/lib/gardener-node-agent"} {
				script = strings.ReplaceAll(script, dir, root+dir)
				if err := os.MkdirAll(root+dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(root+"/usr/local/share/ca-certificates/of-the-image.crt", []byte("CA of the image"), 0o644); err != nil {
				t.Fatal(err)
			}
			log, bundle := filepath.Join(root, "log"), root+caFile
			// Those of this machine must not be found.
			if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, tool := range []string{"bash", "sh", "basename", "find", "head", "touch", "grep", "rm", "mkdir", "cp"} {
				path, err := exec.LookPath(tool)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(root, "bin", tool)); err != nil {
					t.Fatal(err)
				}
			}
			for _, command := range []string{tc.commands, "systemctl"} {
				name, comment, _ := strings.Cut(command, " ")
				stub := "#!" + root + "/bin/sh\n" + comment + "\necho $(basename $0) $* >>" + log + "\n"
				if err := os.WriteFile(filepath.Join(root, "bin", name), []byte(stub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			options := strings.ReplaceAll(tc.options, "DIR", root)
			fresh := options + "\n" + restart
			if tc.anchors == "" {
				fresh = options + " --fresh\n" + restart
			}
			for _, step := range []struct{ name, bundle, want string }{
				{"none", "", ""},
				{"some", "CA bundle", options + "\n" + restart},
				{"removed", "", fresh},
				{"still removed", "", ""},
			} {
				err := os.Remove(bundle)
				if step.bundle != "" {
					err = os.WriteFile(bundle, []byte(step.bundle), 0o644)
				}
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if err := os.WriteFile(log, nil, 0o644); err != nil {
					t.Fatal(err)
				}
				command := exec.CommandContext(t.Context(), "bash", "-c", script)
				command.Env = []string{"PATH=" + root + "/bin"}
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", step.name, err, out)
				}
				if got, err := os.ReadFile(log); err != nil || string(got) != step.want {
					t.Errorf("%s: the script ran %q, %v; want %q", step.name, got, err, step.want)
				}
				for _, path := range tc.trusts {
					_, err := os.Stat(strings.ReplaceAll(path, "DIR", root))
					if exists, want := err == nil, step.bundle != ""; exists != want && !strings.Contains(path, "/image/") || want && !exists {
						t.Errorf("%s: %s is there: %t", step.name, path, exists)
					}
				}
			}
		})
	}
}

// A kubelet exits if kernel settings differ from what it expects, and new CAs restart containerd.
func TestUnitsStartBeforeTheKubelet(t *testing.T) {
	objects, err := Objects(values(Pool{Worker: worker()}))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, unit := range objects[1].(*extensionsv1alpha1.OperatingSystemConfig).Spec.Units {
		at[unit.Name] = i + 1
	}
	for _, first := range []string{"containerd.service", "systemd-sysctl.service", "updatecacerts.service"} {
		if at[first] == 0 || at[first] > at["kubelet.service"] {
			t.Errorf("%s comes after the kubelet: %v", first, at)
		}
	}
}
