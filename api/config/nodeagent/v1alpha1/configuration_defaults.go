package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&NodeAgentConfiguration{}, func(obj any) {
		SetDefaults(obj.(*NodeAgentConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *NodeAgentConfiguration) {
	defaulting.ClientConnection(&config.ClientConnection, 50, 100)
	defaulting.Zero(&config.ClientConnection.ContentType, runtime.ContentTypeProtobuf)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 2751)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 2752)

	defaulting.Duration(&config.Controllers.OperatingSystemConfig.SyncPeriod, 10*time.Minute)
	defaulting.Duration(&config.Controllers.Token.SyncPeriod, time.Hour)
	defaulting.Duration(&config.Controllers.SystemdUnitCheck.SyncPeriod, time.Minute)
	defaulting.Duration(&config.Controllers.SystemdUnitCheck.StuckThreshold, 5*time.Minute)
}
