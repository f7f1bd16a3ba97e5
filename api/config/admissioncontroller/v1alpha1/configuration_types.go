package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AdmissionControllerConfiguration configures the gardener-admission-controller.
type AdmissionControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// GardenClientConnection says how the garden cluster is reached. qps defaults to 50, burst to 100.
	GardenClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"gardenClientConnection"`

	// LogLevel is info, debug or error. Defaults to info.
	LogLevel string `json:"logLevel"`

	// LogFormat is json or text. Defaults to json.
	LogFormat string `json:"logFormat"`

	// Server says where the process listens, and configures what it serves.
	Server ServerConfiguration `json:"server"`

	// Debugging switches profiling on.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`
}

// ServerConfiguration says where the process listens, and configures what it serves.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server for admission and authorization requests. The port defaults to 2721.
	Webhooks HTTPSServer `json:"webhooks"`

	// HealthProbes is the HTTP server for health probes. The port defaults to 2722.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`

	// Metrics is the HTTP server for metrics. The port defaults to 2723.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`

	// ResourceAdmissionConfiguration limits the size and number of objects in project namespaces. Unset means no limits.
	// +optional
	ResourceAdmissionConfiguration *ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`

	// EnableDebugHandlers serves the graph that the seed authorizer decides with at /debug/resource-dependency-graph.
	// Defaults to false.
	// +optional
	EnableDebugHandlers *bool `json:"enableDebugHandlers,omitempty"`
}

// Server says where an HTTP server listens.
type Server struct {
	// BindAddress is the IP address to listen at. Empty means all of them.
	BindAddress string `json:"bindAddress"`

	// Port is the port to listen at.
	Port int `json:"port"`
}

// HTTPSServer says where an HTTPS server listens.
type HTTPSServer struct {
	// The fields of Server belong here too.
	Server `json:",inline"`

	// TLS says where its certificate is.
	TLS TLSServer `json:"tls"`
}

// TLSServer says where the certificate of a server is.
type TLSServer struct {
	// ServerCertDir is the directory with tls.crt and tls.key.
	ServerCertDir string `json:"serverCertDir"`

	// ClientCAFile is a file with CA certificates. If it is set, requests for authorization need a client certificate that one of them
	// has signed; those for admission do not. The file is read again when it changes.
	// Unset means that requests for authorization are not authenticated.
	// +optional
	ClientCAFile *string `json:"clientCAFile,omitempty"`
}

// ResourceAdmissionConfiguration limits the size and number of objects in project namespaces.
type ResourceAdmissionConfiguration struct {
	// Limits are the limits. The first one that matches a resource counts, for size and count.
	Limits []ResourceLimit `json:"limits"`

	// UnrestrictedSubjects are users, groups and service accounts that the limits do not apply to. The apiGroup of users
	// and groups defaults to rbac.authorization.k8s.io.
	// +optional
	UnrestrictedSubjects []rbacv1.Subject `json:"unrestrictedSubjects,omitempty"`

	// OperationMode says what happens to requests that exceed a limit: block or log. Unset means block.
	// +optional
	OperationMode *ResourceAdmissionWebhookMode `json:"operationMode,omitempty"`
}

// ResourceLimit limits the size or the number of objects of some resources. At least one of size and count is set.
type ResourceLimit struct {
	// APIGroups are the API groups, where * stands for all.
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`

	// APIVersions are the API versions, where * stands for all.
	// +optional
	APIVersions []string `json:"apiVersions,omitempty"`

	// Resources are the resources, in their plural form, where * stands for all.
	Resources []string `json:"resources"`

	// Size is the most that an object may be in bytes as JSON, without its status and managed fields.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// Count is the most objects that there may be, if the resource has no namespace. Objects in namespaces are not counted.
	// +optional
	Count *int64 `json:"count,omitempty"`
}

// ResourceAdmissionWebhookMode says what happens to requests that exceed a limit.
type ResourceAdmissionWebhookMode string

const (
	// AdmissionModeBlock refuses them.
	AdmissionModeBlock ResourceAdmissionWebhookMode = "block"
	// AdmissionModeLog lets them through and logs them.
	AdmissionModeLog ResourceAdmissionWebhookMode = "log"
)

// WildcardAll stands for everything in the lists of a ResourceLimit.
const WildcardAll = "*"
