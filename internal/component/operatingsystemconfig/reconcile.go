package operatingsystemconfig

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// Extensions add CAs of their own beside both files, and the paths to the unit.
	caDir        = "/var/lib/ca-certificates-local"
	caFile       = caDir + "/ROOTcerts.crt"
	caAnchorFile = "/etc/pki/trust/anchors/ROOTcerts.pem"
	caScript     = "/var/lib/ssl/update-local-ca-certificates.sh"
	userScript   = nodeagentconfigv1alpha1.BaseDir + "/user.sh"
	sshScript    = nodeagentconfigv1alpha1.BaseDir + "/ssh.sh"
	sshKeysFile  = nodeagentconfigv1alpha1.BaseDir + "/authorized_keys"
	journaldFile = "/etc/systemd/journald.conf.d/50-gardener.conf"
)

var (
	//go:embed user-on.sh
	userOn string
	//go:embed user-off.sh
	userOff string
	//go:embed ssh-on.sh
	sshOn string
	//go:embed ssh-off.sh
	sshOff string
	//go:embed update-local-ca-certificates.sh
	updateCAs string
)

// kernelSettings are those that Kubernetes needs: the ones that the kubelet checks (vm.overcommit_memory, vm.panic_on_oom, kernel.*),
// forwarding, and limits that many pods on one machine reach.
var kernelSettings = map[string]string{
	"fs.file-max":                          "20000000",
	"fs.inotify.max_user_instances":        "8192",
	"fs.inotify.max_user_watches":          "524288",
	"kernel.keys.root_maxbytes":            "25000000",
	"kernel.keys.root_maxkeys":             "1000000",
	"kernel.panic":                         "10",
	"kernel.panic_on_oops":                 "1",
	"kernel.pid_max":                       "4194304",
	"net.bridge.bridge-nf-call-iptables":   "1",
	"net.core.somaxconn":                   "32768",
	"net.ipv4.ip_forward":                  "1",
	"net.ipv4.neigh.default.gc_thresh1":    "4096",
	"net.ipv4.neigh.default.gc_thresh2":    "8192",
	"net.ipv4.neigh.default.gc_thresh3":    "16384",
	"net.ipv4.tcp_max_syn_backlog":         "8096",
	"net.ipv6.conf.all.forwarding":         "1",
	"net.ipv6.conf.default.accept_ra":      "0",
	"net.netfilter.nf_conntrack_max":       "1048576",
	"vm.max_map_count":                     "262144",
	"vm.overcommit_memory":                 "1",
	"vm.panic_on_oom":                      "0",
	"net.ipv4.conf.all.forwarding":         "1",
	"net.ipv4.conf.default.forwarding":     "1",
	"net.ipv4.tcp_syncookies":              "1",
	"net.ipv4.ip_local_port_range":         "32768 65535",
	"fs.aio-max-nr":                        "1048576",
	"net.core.rmem_max":                    "16777216",
	"net.core.wmem_max":                    "16777216",
	"net.ipv4.conf.all.route_localnet":     "0",
	"net.ipv4.conf.default.route_localnet": "0",
}

// reconciling returns the units and files of nodes.
func reconciling(v *Values, pool *Pool, agent []extensionsv1alpha1.File) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error) {
	kubelet, err := kubeletConfiguration(v, pool.Worker.KubeletConfig(v.Kubelet), []corev1.Taint{
		// Removed when the critical components of the node are ready.
		{Key: constants.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("worker pool %q: kubelet configuration: %w", pool.Worker.Name, err)
	}
	const bin = extensionsv1alpha1.OperatingSystemConfigFilePathBinaries
	caUnit, caFiles := trustCAs(pool.Worker.CABundle)
	// They start in this order: a kubelet exits if kernel settings differ from what it expects, and new CAs restart containerd.
	units := []extensionsv1alpha1.Unit{
		{
			Name:    extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService,
			Command: new(extensionsv1alpha1.CommandStart), Enable: new(true),
		},
		{
			Name: "systemd-sysctl.service", Command: new(extensionsv1alpha1.CommandRestart),
			FilePaths: []string{extensionsv1alpha1.OperatingSystemConfigFilePathKernelSettings},
		},
		caUnit,
		kubeletUnit(v, pool),
		{
			Name: nodeagentconfigv1alpha1.UnitName, Command: new(extensionsv1alpha1.CommandStart), Enable: new(true),
			Content:   new(NodeAgentUnit()),
			FilePaths: []string{nodeagentconfigv1alpha1.PathBinary, NodeAgentConfigFile, nodeagentconfigv1alpha1.ClusterCAFilePath},
		},
		{Name: "systemd-journald.service", Command: new(extensionsv1alpha1.CommandRestart), FilePaths: []string{journaldFile}},
	}
	files := slices.Concat(agent, []extensionsv1alpha1.File{
		fromImage(nodeagentconfigv1alpha1.PathBinary, pool.NodeAgentImage, NodeAgentPathInImage),
		fromImage(bin+"/kubelet", pool.KubeletImage, KubeletImageDir+"/kubelet"),
		fromImage(bin+"/kubectl", pool.KubeletImage, KubeletImageDir+"/kubectl"),
		inline(KubeletCAFile, 0o644, string(v.KubeletCABundle)),
		inline(extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig, 0o600, string(kubelet)),
		inline(extensionsv1alpha1.OperatingSystemConfigFilePathKernelSettings, 0o644, sysctls(pool.Worker.Sysctls)),
		inline(journaldFile, 0o644, "[Journal]\nMaxFileSec=24h\nMaxRetentionSec=14day\n"),
	})
	sshUnits, sshFiles := ssh(v.SSHPublicKeys)
	return append(units, sshUnits...), slices.Concat(files, sshFiles, caFiles), nil
}

// trustCAs makes the machine trust the CAs of the pool. The unit also exists without any, to remove those that a machine had before, and for those of
// extensions.
func trustCAs(bundle *string) (extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	const name, title = "updatecacerts.service", "Trust the certificate authorities of the worker pool"
	files := []extensionsv1alpha1.File{inline(caScript, 0o755, updateCAs)}
	if bundle == nil || *bundle == "" {
		return oneshot(name, title, caScript), files
	}
	return oneshot(name, title, caScript, caFile, caAnchorFile), append(files, inline(caFile, 0o644, *bundle), inline(caAnchorFile, 0o644, *bundle))
}

// ssh enables or disables logins of the user gardener, and the SSH server. The server starts when the keys are those of the shoot, and ends before they
// are removed.
func ssh(keys []string) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	const (
		user, userTitle     = "gardener-user.service", "Allow or refuse logins of the user gardener"
		server, serverTitle = "sshd-ensurer.service", "Start or stop the SSH server"
	)
	if len(keys) == 0 {
		return []extensionsv1alpha1.Unit{oneshot(server, serverTitle, sshScript), oneshot(user, userTitle, userScript)},
			[]extensionsv1alpha1.File{inline(sshScript, 0o755, sshOff), inline(userScript, 0o755, userOff)}
	}
	return []extensionsv1alpha1.Unit{oneshot(user, userTitle, userScript, sshKeysFile), oneshot(server, serverTitle, sshScript)}, []extensionsv1alpha1.File{
		inline(userScript, 0o755, userOn), inline(sshScript, 0o755, sshOn), inline(sshKeysFile, 0o600, strings.Join(keys, "\n")+"\n"),
	}
}

// oneshot runs a script at boot, and when it or another file changes.
func oneshot(name, title, script string, files ...string) extensionsv1alpha1.Unit {
	return extensionsv1alpha1.Unit{
		Name: name, Command: new(extensionsv1alpha1.CommandRestart), Enable: new(true),
		Content: new(`[Unit]
Description=` + title + `

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + script + `

[Install]
WantedBy=multi-user.target
`),
		FilePaths: append([]string{script}, files...),
	}
}

// sysctls renders kernel settings; those of the pool take precedence.
func sysctls(pool map[string]string) string {
	settings := maps.Clone(kernelSettings)
	maps.Copy(settings, pool)
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&out, "%s = %s\n", key, settings[key])
	}
	return out.String()
}
