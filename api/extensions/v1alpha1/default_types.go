package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// DefaultSpec holds the fields that the spec of every extension resource starts with. The gardenlet or the
// gardener-operator writes it.
type DefaultSpec struct {
	// Type names the implementation that is responsible, such as "local". Only the extension that was registered for this
	// kind and type acts on the object. Validation refuses a change.
	Type string `json:"type"`

	// Class says what the object is for: a shoot, a seed or the garden. Unset means shoot. Immutable.
	// +optional
	Class *ExtensionClass `json:"class,omitempty"`

	// ProviderConfig is configuration that only the responsible extension understands, an object with apiVersion and kind.
	// It is passed on unread from where the user wrote it, for example the Shoot.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// DefaultStatus holds the fields that the status of every extension resource starts with. The responsible extension
// writes it, unless a field says otherwise.
type DefaultStatus struct {
	// ProviderStatus is what the extension publishes about the object, an object with apiVersion and kind. It may
	// be handed to other extension resources, as the infrastructure's is to ControlPlane and Worker, but is not needed to
	// continue: it can be rebuilt.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`

	// Conditions are the results of the extension's health checks, one entry per type. The care controller of the
	// gardenlet merges them into the conditions of the Shoot or Seed.
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`

	// LastError describes why the last operation failed, with error codes the user can act on. It is cleared when an
	// operation succeeds.
	// +optional
	LastError *corev1beta1.LastError `json:"lastError,omitempty"`

	// LastOperation describes what the extension does at the moment or did last, and how far it came. The gardenlet waits
	// for the state Succeeded.
	// +optional
	LastOperation *corev1beta1.LastOperation `json:"lastOperation,omitempty"`

	// ObservedGeneration is the metadata.generation that the extension acted on last. While it is older than the object's
	// generation, the rest of the status is about an earlier spec.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State is what the extension cannot rebuild from anywhere else. It is stored in the ShootState, and handed back when
	// the control plane is restored on another seed.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	State *runtime.RawExtension `json:"state,omitempty"`

	// Resources names objects in the same namespace that state refers to. They are stored and restored along with it.
	// +optional
	Resources []corev1beta1.NamedResourceReference `json:"resources,omitempty"`
}

// ExtensionClass says what an extension resource is for.
type ExtensionClass string

const (
	// ExtensionClassShoot marks extension resources that serve a shoot. They live in the shoot's control plane namespace.
	ExtensionClassShoot ExtensionClass = "shoot"
	// ExtensionClassSeed marks extension resources that serve a seed.
	ExtensionClassSeed ExtensionClass = "seed"
	// ExtensionClassGarden marks extension resources that serve the garden itself. They live in the runtime cluster.
	ExtensionClassGarden ExtensionClass = "garden"
)

// IPFamily is a version of the Internet Protocol.
type IPFamily string

const (
	// IPFamilyIPv4 stands for IPv4.
	IPFamilyIPv4 IPFamily = "IPv4"
	// IPFamilyIPv6 stands for IPv6.
	IPFamilyIPv6 IPFamily = "IPv6"
)
