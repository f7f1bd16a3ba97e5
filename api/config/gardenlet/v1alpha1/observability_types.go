package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Logging configures the logging stack of a seed.
type Logging struct {
	// Enabled turns it on. False is the default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Vali configures the log store Vali.
	// +optional
	Vali *Vali `json:"vali,omitempty"`
	// VictoriaLogs configures the log store VictoriaLogs.
	// +optional
	VictoriaLogs *VictoriaLogs `json:"victoriaLogs,omitempty"`
	// ShootNodeLogging says for which shoots the logs of nodes are collected.
	// +optional
	ShootNodeLogging *ShootNodeLogging `json:"shootNodeLogging,omitempty"`
	// ShootEventLogging says whether events of shoots are collected.
	// +optional
	ShootEventLogging *ShootEventLogging `json:"shootEventLogging,omitempty"`
}

// Vali configures the log store Vali.
type Vali struct {
	// Enabled turns it on. False is the default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Garden configures that of the "garden" namespace.
	// +optional
	Garden *GardenVali `json:"garden,omitempty"`
}

// GardenVali configures the Vali in the "garden" namespace.
type GardenVali struct {
	// Storage is the size of its volume. "100Gi" is the default.
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`
}

// VictoriaLogs configures the log store VictoriaLogs.
type VictoriaLogs struct {
	// Enabled turns it on. False is the default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Garden configures that of the "garden" namespace.
	// +optional
	Garden *GardenVictoriaLogs `json:"garden,omitempty"`
}

// GardenVictoriaLogs configures the VictoriaLogs in the "garden" namespace.
type GardenVictoriaLogs struct {
	// Storage is the size of its volume. "100Gi" is the default.
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`
}

// ShootNodeLogging says for which shoots the logs of nodes are collected.
type ShootNodeLogging struct {
	// ShootPurposes are the purposes of those shoots. None if empty.
	// +optional
	ShootPurposes []corev1beta1.ShootPurpose `json:"shootPurposes,omitempty"`
}

// ShootEventLogging says whether events of shoots are collected.
type ShootEventLogging struct {
	// Enabled turns it on. False is the default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// MonitoringConfig configures the monitoring stack.
type MonitoringConfig struct {
	// Shoot configures the monitoring of shoots.
	// +optional
	Shoot *ShootMonitoringConfig `json:"shoot,omitempty"`
}

// ShootMonitoringConfig configures the monitoring of shoots.
type ShootMonitoringConfig struct {
	// Enabled turns it on. True is the default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// RemoteWrite sends metrics of shoots to another system as well.
	// +optional
	RemoteWrite *RemoteWriteMonitoringConfig `json:"remoteWrite,omitempty"`
	// ExternalLabels are put on all metrics and alerts that leave the seed.
	// +optional
	ExternalLabels map[string]string `json:"externalLabels,omitempty"`
}

// RemoteWriteMonitoringConfig sends metrics to another system as well.
type RemoteWriteMonitoringConfig struct {
	// URL is where they are sent to.
	URL string `json:"url"`
	// Keep are the metrics that are sent.
	// +optional
	Keep []string `json:"keep,omitempty"`
}
