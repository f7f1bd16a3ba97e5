package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
)

// ControllerConfiguration configures the controllers one by one.
type ControllerConfiguration struct {
	// Garden configures the controller for the Garden.
	Garden GardenControllerConfig `json:"garden"`

	// GardenCare configures the controller that maintains the conditions of the Garden.
	GardenCare GardenCareControllerConfiguration `json:"gardenCare"`

	// GardenletDeployer configures the controller that deploys gardenlets in seeds.
	GardenletDeployer GardenletDeployerControllerConfig `json:"gardenletDeployer"`

	// NetworkPolicy configures the controller that writes NetworkPolicies in the runtime cluster.
	NetworkPolicy NetworkPolicyControllerConfiguration `json:"networkPolicy"`

	// VPAEvictionRequirements configures the controller that lets pods be evicted for less resources in the maintenance
	// window only.
	VPAEvictionRequirements VPAEvictionRequirementsControllerConfiguration `json:"vpaEvictionRequirements"`

	// Extension configures the controller for Extensions.
	Extension ExtensionControllerConfiguration `json:"extension"`

	// ExtensionCare configures the controller that maintains the health conditions of Extensions.
	ExtensionCare ExtensionCareControllerConfiguration `json:"extensionCare"`

	// ExtensionReference configures the controller that keeps Secrets and ConfigMaps while Extensions refer to them.
	ExtensionReference ExtensionReferenceControllerConfiguration `json:"extensionReference"`

	// ExtensionRequiredRuntime configures the controller that finds out which Extensions the garden needs.
	ExtensionRequiredRuntime ExtensionRequiredRuntimeControllerConfiguration `json:"extensionRequiredRuntime"`

	// ExtensionRequiredVirtual configures the controller that finds out which Extensions seeds need.
	ExtensionRequiredVirtual ExtensionRequiredVirtualControllerConfiguration `json:"extensionRequiredVirtual"`
}

// GardenControllerConfig configures the controller for the Garden.
type GardenControllerConfig struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often the Garden is reconciled if nothing changed. Defaults to 1h0m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// ETCDConfig configures etcd-druid and the etcds of the virtual garden.
	// +optional
	ETCDConfig *gardenletconfigv1alpha1.ETCDConfig `json:"etcdConfig,omitempty"`
}

// GardenCareControllerConfiguration configures the controller that maintains the conditions of the Garden.
type GardenCareControllerConfiguration struct {
	// SyncPeriod is how often the Garden is checked. Defaults to 1m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// ConditionThresholds say how long conditions stay Progressing before they turn False.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// GardenletDeployerControllerConfig configures the controller that deploys gardenlets in seeds.
type GardenletDeployerControllerConfig struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// NetworkPolicyControllerConfiguration configures the controller that writes NetworkPolicies in the runtime cluster.
type NetworkPolicyControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Unset means 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// AdditionalNamespaceSelectors select namespaces, beyond the usual ones, in which NetworkPolicies are written.
	// +optional
	AdditionalNamespaceSelectors []metav1.LabelSelector `json:"additionalNamespaceSelectors,omitempty"`
}

// VPAEvictionRequirementsControllerConfiguration configures the controller that lets pods be evicted for less
// resources in the maintenance window only.
type VPAEvictionRequirementsControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Unset means 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ExtensionControllerConfiguration configures the controller for Extensions.
type ExtensionControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ExtensionCareControllerConfiguration configures the controller that maintains the health conditions of Extensions.
type ExtensionCareControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`

	// SyncPeriod is how often each Extension is checked. Defaults to 1m0s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// ConditionThresholds say how long conditions stay Progressing before they turn False.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ExtensionReferenceControllerConfiguration configures the controller that keeps Secrets and ConfigMaps while
// Extensions refer to them.
type ExtensionReferenceControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ExtensionRequiredRuntimeControllerConfiguration configures the controller that finds out which Extensions the garden
// needs.
type ExtensionRequiredRuntimeControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// ExtensionRequiredVirtualControllerConfiguration configures the controller that finds out which Extensions seeds
// need.
type ExtensionRequiredVirtualControllerConfiguration struct {
	// ConcurrentSyncs is how many objects are worked on at the same time. Defaults to 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}
