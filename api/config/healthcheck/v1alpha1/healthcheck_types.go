package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	time "time"
)

// HealthCheckConfig configures the health checks of an extension. It is part of the extension's own configuration, and
// no kind by itself.
type HealthCheckConfig struct {
	// SyncPeriod is how often health is checked.
	SyncPeriod metav1.Duration `json:"syncPeriod"`

	// ShootRESTOptions configures the client for the API server of the Shoot. What is unset keeps the default of the
	// client.
	// +optional
	ShootRESTOptions *RESTOptions `json:"shootRESTOptions,omitempty"`
}

// RESTOptions configures a client of an API server.
type RESTOptions struct {
	// QPS is how many requests per second are sent on average.
	// +optional
	QPS *float32 `json:"qps,omitempty"`

	// Burst is how many requests are sent at once at most.
	// +optional
	Burst *int `json:"burst,omitempty"`

	// Timeout is how long a request may take, in nanoseconds.
	// +optional
	Timeout *time.Duration `json:"timeout,omitempty"`
}
