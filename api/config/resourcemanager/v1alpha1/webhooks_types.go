package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// ResourceManagerWebhookConfiguration configures the webhooks one by one.
type ResourceManagerWebhookConfiguration struct {
	// CRDDeletionProtection configures the webhook that keeps CustomResourceDefinitions and extension resources from being
	// deleted by mistake.
	CRDDeletionProtection CRDDeletionProtection `json:"crdDeletionProtection"`

	// EndpointSliceHints configures the webhook that lets clients prefer endpoints in their zone.
	EndpointSliceHints EndpointSliceHintsWebhookConfig `json:"endpointSliceHints"`

	// ExtensionValidation configures the webhook that validates extension resources.
	ExtensionValidation ExtensionValidation `json:"extensionValidation"`

	// HighAvailabilityConfig configures the webhook that makes workload highly available.
	HighAvailabilityConfig HighAvailabilityConfigWebhookConfig `json:"highAvailabilityConfig"`

	// KubernetesServiceHost configures the webhook that sets the address of the kube-apiserver in pods.
	KubernetesServiceHost KubernetesServiceHostWebhookConfig `json:"kubernetesServiceHost"`

	// SystemComponentsConfig configures the webhook that places system components on the right nodes.
	SystemComponentsConfig SystemComponentsConfigWebhookConfig `json:"systemComponentsConfig"`

	// PodKubeAPIServerLoadBalancing configures the webhook that lets pods reach the API server through the load balancing
	// in the cluster.
	PodKubeAPIServerLoadBalancing PodKubeAPIServerLoadBalancingWebhookConfig `json:"podKubeAPIServerLoadBalancing"`

	// PodSchedulerName configures the webhook that sets the scheduler of pods.
	PodSchedulerName PodSchedulerNameWebhookConfig `json:"podSchedulerName"`

	// PodTopologySpreadConstraints configures the webhook that lets topology spread constraints see pods of one template
	// only.
	PodTopologySpreadConstraints PodTopologySpreadConstraintsWebhookConfig `json:"podTopologySpreadConstraints"`

	// ProjectedTokenMount configures the webhook that mounts tokens of ServiceAccounts.
	ProjectedTokenMount ProjectedTokenMountWebhookConfig `json:"projectedTokenMount"`

	// NodeAgentAuthorizer configures the webhook that authorizes requests of gardener-node-agents.
	NodeAgentAuthorizer NodeAgentAuthorizerWebhookConfig `json:"nodeAgentAuthorizer"`

	// SeccompProfile configures the webhook that sets the seccomp profile of pods.
	SeccompProfile SeccompProfileWebhookConfig `json:"seccompProfile"`

	// TokenInvalidator configures the webhook that invalidates static tokens of ServiceAccounts.
	TokenInvalidator TokenInvalidatorWebhookConfig `json:"tokenInvalidator"`

	// VPAInPlaceUpdates configures the webhook that makes vertical pod autoscalers update pods in place.
	VPAInPlaceUpdates VPAInPlaceUpdatesConfig `json:"vpaInPlaceUpdates"`
}

// CRDDeletionProtection configures the webhook that keeps CustomResourceDefinitions and extension resources from being
// deleted by mistake.
type CRDDeletionProtection struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// EndpointSliceHintsWebhookConfig configures the webhook that lets clients prefer endpoints in their zone, by hints in EndpointSlices. Only
// EndpointSlices with the label endpoint-slice-hints.resources.gardener.cloud/consider=true have them. Disabled by default.
// Source: concepts.txt, Gardener Resource Manager, "EndpointSlice Hints".
type EndpointSliceHintsWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// ExtensionValidation configures the webhook that validates extension resources.
type ExtensionValidation struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// HighAvailabilityConfigWebhookConfig configures the webhook that makes workload highly available.
type HighAvailabilityConfigWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`

	// DefaultNotReadyTolerationSeconds is for how many seconds pods tolerate a node that is not ready. Unset leaves it to
	// the API server.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`

	// DefaultUnreachableTolerationSeconds is for how many seconds pods tolerate a node that is unreachable. Unset leaves
	// it to the API server.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}

// KubernetesServiceHostWebhookConfig configures the webhook that sets the address of the kube-apiserver in pods, through the
// environment variable KUBERNETES_SERVICE_HOST.
type KubernetesServiceHostWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`

	// Host is the address. Required if enabled.
	Host string `json:"host"`
}

// SystemComponentsConfigWebhookConfig configures the webhook that places system components on the right nodes.
type SystemComponentsConfigWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`

	// NodeSelector selects the nodes for system components. The tolerations of pods are found by looking at these nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// PodNodeSelector is put on the pods.
	// +optional
	PodNodeSelector map[string]string `json:"podNodeSelector,omitempty"`

	// PodTolerations are put on the pods.
	// +optional
	PodTolerations []corev1.Toleration `json:"podTolerations,omitempty"`
}

// PodKubeAPIServerLoadBalancingWebhookConfig configures the webhook that lets pods reach the API server through the
// load balancing in the cluster.
type PodKubeAPIServerLoadBalancingWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// PodSchedulerNameWebhookConfig configures the webhook that sets the scheduler of pods.
type PodSchedulerNameWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`

	// SchedulerName is the name of the scheduler. Defaults to default-scheduler if enabled.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty"`
}

// PodTopologySpreadConstraintsWebhookConfig configures the webhook that lets topology spread constraints see pods of
// one template only.
type PodTopologySpreadConstraintsWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// ProjectedTokenMountWebhookConfig configures the webhook that mounts tokens of ServiceAccounts.
type ProjectedTokenMountWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`

	// ExpirationSeconds is for how many seconds tokens are valid. Defaults to 43200 if enabled.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// NodeAgentAuthorizerWebhookConfig configures the webhook that authorizes requests of gardener-node-agents.
type NodeAgentAuthorizerWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`

	// MachineNamespace is the namespace of the Machines in the source cluster that requests are checked against. Unset for
	// shoots without machines of their own.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`

	// AuthorizeWithSelectors is accepted for configurations of the original, and changes nothing: selectors count whenever
	// the API server sends them with its questions.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
}

// SeccompProfileWebhookConfig configures the webhook that sets the seccomp profile of pods.
type SeccompProfileWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// TokenInvalidatorWebhookConfig configures the webhook that invalidates static tokens of ServiceAccounts when they are
// written, in Secrets which the controller of the same name has labelled. Disabled by default.
type TokenInvalidatorWebhookConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}

// VPAInPlaceUpdatesConfig configures the webhook that makes vertical pod autoscalers update pods in place.
type VPAInPlaceUpdatesConfig struct {
	// Enabled switches the webhook on.
	Enabled bool `json:"enabled"`
}
