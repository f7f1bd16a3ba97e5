package config

import (
	"net/url"
	"path/filepath"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
)

// ValidateNodeAgent checks the configuration of the gardener-node-agent.
func ValidateNodeAgent(config *nodeagentconfigv1alpha1.NodeAgentConfiguration) field.ErrorList {
	errs := client(&config.ClientConnection, field.NewPath("clientConnection"))
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	path := field.NewPath("server")
	if server := config.Server.HealthProbes; server != nil {
		errs = append(errs, port(server.Port, path.Child("healthProbes"))...)
	}
	if server := config.Server.Metrics; server != nil {
		errs = append(errs, port(server.Port, path.Child("metrics"))...)
	}

	path = field.NewPath("apiServer")
	if parsed, err := url.Parse(config.APIServer.Server); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		errs = append(errs, field.Invalid(path.Child("server"), config.APIServer.Server, "must be a URL with scheme https"))
	}
	errs = append(errs, required(config.APIServer.CAFile, path.Child("caFile"))...)
	if bootstrap := config.Bootstrap; bootstrap != nil && bootstrap.KubeletDataVolumeSize != nil && *bootstrap.KubeletDataVolumeSize <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("bootstrap", "kubeletDataVolumeSize"), *bootstrap.KubeletDataVolumeSize, "must be above zero"))
	}

	path = field.NewPath("controllers")
	osc := &config.Controllers.OperatingSystemConfig
	errs = append(errs, positive(osc.SyncPeriod, path.Child("operatingSystemConfig", "syncPeriod"))...)
	errs = append(errs, required(osc.SecretName, path.Child("operatingSystemConfig", "secretName"))...)
	if _, err := semver.NewVersion(osc.KubernetesVersion); err != nil {
		errs = append(errs, field.Invalid(path.Child("operatingSystemConfig", "kubernetesVersion"), osc.KubernetesVersion, "must be a version such as 1.33.0"))
	}
	errs = append(errs, positive(config.Controllers.Token.SyncPeriod, path.Child("token", "syncPeriod"))...)
	paths := map[string]bool{}
	for i, sync := range config.Controllers.Token.SyncConfigs {
		path := path.Child("token", "syncConfigs").Index(i)
		errs = append(errs, required(sync.SecretName, path.Child("secretName"))...)
		switch {
		case sync.Path == "":
			errs = append(errs, field.Required(path.Child("path"), "must be set"))
		case !filepath.IsAbs(sync.Path):
			errs = append(errs, field.Invalid(path.Child("path"), sync.Path, "must be an absolute path"))
		case paths[sync.Path]:
			errs = append(errs, field.Duplicate(path.Child("path"), sync.Path))
		}
		paths[sync.Path] = true
	}
	errs = append(errs, positive(config.Controllers.SystemdUnitCheck.SyncPeriod, path.Child("systemdUnitCheck", "syncPeriod"))...)
	return append(errs, positive(config.Controllers.SystemdUnitCheck.StuckThreshold, path.Child("systemdUnitCheck", "stuckThreshold"))...)
}
