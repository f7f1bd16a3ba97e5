// Package defaulting has the defaults that configuration files have in common.
package defaulting

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

const (
	// LogLevel is the level of the log unless configured otherwise.
	LogLevel = "info"
	// LogFormat is the format of the log unless configured otherwise.
	LogFormat = "json"
	// CacheSyncTimeout is how long a controller waits for its caches unless configured otherwise.
	CacheSyncTimeout = 2 * time.Minute
)

// Unset sets a field that was left out.
func Unset[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Zero sets a field that has its zero value.
func Zero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Section creates a section of the configuration that was left out, so that its fields get their defaults, and returns it.
func Section[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// Duration sets a duration that was left out.
func Duration(field **metav1.Duration, value time.Duration) {
	Unset(field, metav1.Duration{Duration: value})
}

// ClientConnection sets the limits of a client.
func ClientConnection(config *componentbaseconfigv1alpha1.ClientConnectionConfiguration, qps float32, burst int32) {
	Zero(&config.QPS, qps)
	Zero(&config.Burst, burst)
}

// LeaderElection sets the times that Kubernetes recommends, and the Lease. An empty namespace stays empty.
func LeaderElection(config *componentbaseconfigv1alpha1.LeaderElectionConfiguration, namespace, name string) {
	Zero(&config.ResourceLock, "leases")
	Zero(&config.ResourceNamespace, namespace)
	Zero(&config.ResourceName, name)
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(config)
}
