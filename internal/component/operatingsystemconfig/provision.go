package operatingsystemconfig

import (
	"bytes"
	_ "embed"
	"text/template"

	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// NodeAgentConfigFile is the configuration file of the node agent on a machine.
	NodeAgentConfigFile = nodeagentconfigv1alpha1.BaseDir + "/config.yaml"
	// InstalledImageFile is a file with the image that the node agent was extracted from.
	InstalledImageFile = nodeagentconfigv1alpha1.BaseDir + "/installed-image"
	// NodeAgentPathInImage is the path of the binary in the image with all processes of Gardener. The name determines the process.
	NodeAgentPathInImage = "/usr/local/bin/gardener"
)

//go:embed init.sh.tmpl
var initScript string

var initTemplate = template.Must(template.New("init.sh").Option("missingkey=error").Parse(initScript))

// agentFiles are the files of the node agent in both OperatingSystemConfigs: its configuration and CA bundles.
func agentFiles(v *Values, pool *Pool) ([]extensionsv1alpha1.File, error) {
	config := &nodeagentconfigv1alpha1.NodeAgentConfiguration{
		APIServer: nodeagentconfigv1alpha1.APIServer{Server: v.APIServerURL, CAFile: nodeagentconfigv1alpha1.ClusterCAFilePath},
		Controllers: nodeagentconfigv1alpha1.ControllerConfiguration{
			OperatingSystemConfig: nodeagentconfigv1alpha1.OperatingSystemConfigControllerConfig{
				SecretName: SecretName(pool.Worker.Name, pool.Hash), KubernetesVersion: KubernetesVersion(&pool.Worker, v.KubernetesVersion),
			},
			Token: nodeagentconfigv1alpha1.TokenControllerConfig{SyncConfigs: v.TokenSecrets},
		},
	}
	config.APIVersion, config.Kind = nodeagentconfigv1alpha1.SchemeGroupVersion.String(), "NodeAgentConfiguration"
	config.ClientConnection.Kubeconfig = nodeagentconfigv1alpha1.KubeconfigFilePath
	if size := pool.KubeletDataVolumeSize; size != nil {
		config.Bootstrap = &nodeagentconfigv1alpha1.BootstrapConfiguration{KubeletDataVolumeSize: size}
	}
	nodeagentconfigv1alpha1.SetDefaults(config)
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	return []extensionsv1alpha1.File{
		inline(NodeAgentConfigFile, 0o600, string(data)),
		inline(nodeagentconfigv1alpha1.ClusterCAFilePath, 0o644, string(v.ClusterCABundle)),
	}, nil
}

// provisioning returns the units and files of new machines.
func provisioning(pool *Pool, agent []extensionsv1alpha1.File) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	token := inline(nodeagentconfigv1alpha1.BootstrapTokenFilePath, 0o600, PlaceholderBootstrapToken)
	machine := inline(nodeagentconfigv1alpha1.MachineNameFilePath, 0o644, PlaceholderMachineName)
	for _, file := range []*extensionsv1alpha1.File{&token, &machine} {
		file.Content.TransmitUnencoded = new(true) // so that the placeholder in the user data can be replaced
	}
	script := inline(nodeagentconfigv1alpha1.PathInitScript, 0o755, InitScript(pool.NodeAgentImage))
	files := append([]extensionsv1alpha1.File{script, token, machine}, agent...)
	return []extensionsv1alpha1.Unit{{
		Name: nodeagentconfigv1alpha1.InitUnitName, Command: new(extensionsv1alpha1.CommandStart), Enable: new(true),
		Content: new(`[Unit]
Description=Install the gardener-node-agent
Wants=network-online.target containerd.service
After=network-online.target containerd.service
ConditionPathExists=!` + nodeagentconfigv1alpha1.KubeconfigFilePath + `
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=2
ExecStart=` + nodeagentconfigv1alpha1.PathInitScript + `

[Install]
WantedBy=multi-user.target
`),
		FilePaths: []string{nodeagentconfigv1alpha1.PathInitScript},
	}}, files
}

// InitScript renders the script that extracts the node agent from an image and starts it.
func InitScript(image string) string {
	var out bytes.Buffer
	err := initTemplate.Execute(&out, map[string]string{
		"Image": image, "PathInImage": NodeAgentPathInImage, "Binary": nodeagentconfigv1alpha1.PathBinary,
		"TempDir": nodeagentconfigv1alpha1.TempDir, "Config": NodeAgentConfigFile, "InstalledImage": InstalledImageFile,
	})
	if err != nil {
		panic(err) // the template and its values are constants
	}
	return out.String()
}

// NodeAgentUnit is the unit of the node agent. "gardener-node-agent bootstrap" writes it, and the node agent keeps it up to date.
func NodeAgentUnit() string {
	return `[Unit]
Description=gardener-node-agent
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=` + nodeagentconfigv1alpha1.PathBinary + ` --config=` + NodeAgentConfigFile + `
Environment=GOMEMLIMIT=80MiB GOGC=50
Restart=always
RestartSec=2
OOMScoreAdjust=-999
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`
}

func inline(path string, mode uint32, content string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: path, Permissions: new(mode),
		Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: content}},
	}
}

func fromImage(path, image, pathInImage string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: path, Permissions: new(uint32(0o755)),
		Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: image, FilePathInImage: pathInImage}},
	}
}
