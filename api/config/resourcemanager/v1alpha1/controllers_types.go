package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceManagerControllerConfiguration configures the controllers one by one.
type ResourceManagerControllerConfiguration struct {
	// ClusterID is the identity that is written in the origin annotation of objects, so that several clusters can manage
	// objects in one. <cluster> takes it from the ConfigMap kube-system/cluster-identity, and <default> does so if there
	// is one. Defaults to the empty string, which leaves the identity out.
	// +optional
	ClusterID *string `json:"clusterID,omitempty"`

	// ResourceClass is the class of ManagedResources this process is responsible for. The star stands for all of them.
	// Defaults to resources.
	// +optional
	ResourceClass *string `json:"resourceClass,omitempty"`

	// CacheSyncTimeout is how long a controller waits at its start until its caches are filled. Defaults to 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`

	// GarbageCollector configures the controller that deletes Secrets and ConfigMaps that no object refers to.
	GarbageCollector GarbageCollectorControllerConfig `json:"garbageCollector"`

	// Health configures the controllers that watch over the health of ManagedResources.
	Health HealthControllerConfig `json:"health"`

	// CSRApprover configures the controller that approves the certificates of kubelets.
	CSRApprover CSRApproverControllerConfig `json:"csrApprover"`

	// ManagedResource configures the controller that applies ManagedResources.
	ManagedResource ManagedResourceControllerConfig `json:"managedResource"`

	// IstioClusterConfiguration configures the controller that keeps istio's configuration of clusters in step with
	// DestinationRules, Services and namespaces.
	IstioClusterConfiguration IstioClusterConfigurationControllerConfig `json:"istioClusterConfiguration"`

	// NetworkPolicy configures the controller that writes NetworkPolicies for Services.
	NetworkPolicy NetworkPolicyControllerConfig `json:"networkPolicy"`

	// NodeCriticalComponents configures the controller that frees a node for pods when its critical pods are ready.
	NodeCriticalComponents NodeCriticalComponentsControllerConfig `json:"nodeCriticalComponents"`

	// NodeAgentReconciliationDelay configures the controller that spreads the work of gardener-node-agents over time.
	NodeAgentReconciliationDelay NodeAgentReconciliationDelayControllerConfig `json:"nodeAgentReconciliationDelay"`

	// TokenInvalidator configures the controller that invalidates static tokens of ServiceAccounts.
	TokenInvalidator TokenInvalidatorControllerConfig `json:"tokenInvalidator"`

	// TokenRequestor configures the controller that requests tokens for ServiceAccounts.
	TokenRequestor TokenRequestorControllerConfig `json:"tokenRequestor"`
}

// GarbageCollectorControllerConfig configures the controller that deletes Secrets and ConfigMaps that no object refers to.
type GarbageCollectorControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// SyncPeriod is how often it checks. Defaults to 1h0m0s if enabled.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// HealthControllerConfig configures the controllers that watch over the health of ManagedResources.
type HealthControllerConfig struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each object is checked. Defaults to 1m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// CSRApproverControllerConfig configures the controller that approves the certificates of kubelets.
type CSRApproverControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 1 if enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// MachineNamespace is the namespace of the Machines in the source cluster that requests are checked against. Unset for
	// shoots without machines of their own.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
}

// ManagedResourceControllerConfig configures the controller that applies ManagedResources.
type ManagedResourceControllerConfig struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each object is applied if nothing changed. Defaults to 1m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// AlwaysUpdate says whether objects are updated without looking whether they differ. Defaults to false.
	// +optional
	AlwaysUpdate *bool `json:"alwaysUpdate,omitempty"`

	// ManagedByLabelValue is the value of the label resources.gardener.cloud/managed-by that every object gets. Defaults
	// to gardener.
	// +optional
	ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
}

// IstioClusterConfigurationControllerConfig configures the controller that keeps istio's configuration of clusters in
// step with DestinationRules, Services and namespaces.
type IstioClusterConfigurationControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5 if enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// NetworkPolicyControllerConfig configures the controller that writes NetworkPolicies for Services.
type NetworkPolicyControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5 if enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// NamespaceSelectors select the namespaces whose Services are checked. Unset means all of them.
	// +optional
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`

	// IngressControllerSelector selects the pods of the ingress controller, which may talk to what Ingresses point to.
	// +optional
	IngressControllerSelector *IngressControllerSelector `json:"ingressControllerSelector,omitempty"`
}

// IngressControllerSelector selects the pods of the ingress controller.
type IngressControllerSelector struct {
	// Namespace is their namespace.
	Namespace string `json:"namespace"`

	// PodSelector matches their labels.
	PodSelector metav1.LabelSelector `json:"podSelector"`
}

// NodeCriticalComponentsControllerConfig configures the controller that frees a node for pods when its critical pods
// are ready.
type NodeCriticalComponentsControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5 if enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// Backoff is how long it waits before it checks a node again. Defaults to 10s if enabled.
	// +optional
	Backoff *metav1.Duration `json:"backoff,omitempty"`
}

// NodeAgentReconciliationDelayControllerConfig configures the controller that spreads the work of gardener-node-agents
// over time.
type NodeAgentReconciliationDelayControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// MinDelay is the shortest delay. Defaults to 0s if enabled.
	// +optional
	MinDelay *metav1.Duration `json:"minDelay,omitempty"`

	// MaxDelay is the longest delay. Defaults to 5m0s if enabled.
	// +optional
	MaxDelay *metav1.Duration `json:"maxDelay,omitempty"`
}

// TokenInvalidatorControllerConfig configures the controller that invalidates static tokens of ServiceAccounts with
// automountServiceAccountToken false. The webhook of the same name has to be enabled, too. Disabled by default.
// Source: concepts.txt, Gardener Resource Manager, "TokenInvalidator Controller".
type TokenInvalidatorControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5 if enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// TokenRequestorControllerConfig configures the controller that requests tokens for ServiceAccounts.
type TokenRequestorControllerConfig struct {
	// Enabled switches the controller on.
	Enabled bool `json:"enabled"`

	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5 if enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}
