package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// DefaultResourceClass is the class of the gardener-resource-manager that no class was configured for.
const DefaultResourceClass = "resources"

// AllResourceClass is configured for a gardener-resource-manager that is responsible for every class.
const AllResourceClass = "*"

// CompressedDataKey is the key in the Secrets of a ManagedResource whose value is compressed with Brotli. It holds what otherwise
// would be spread over several keys.
const CompressedDataKey = "data.yaml.br"

// BrotliCompressionSuffix ends the keys in the Secrets of a ManagedResource whose values are compressed with Brotli.
const BrotliCompressionSuffix = ".br"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedresources,singular=managedresource,scope=Namespaced,shortName=mr
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=".spec.class"
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesHealthy")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesProgressing")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// ManagedResource makes the gardener-resource-manager apply the manifests of some Secrets to a cluster, keep them as
// they are written there, watch over their health, and delete them in the end.
type ManagedResource struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is applied, and how. Written by the component that needs the objects.
	// +optional
	Spec ManagedResourceSpec `json:"spec,omitempty"`

	// Status says how far it came. Written by the gardener-resource-manager.
	// +optional
	Status ManagedResourceStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ManagedResourceList is a list of ManagedResource objects.
type ManagedResourceList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []ManagedResource `json:"items"`
}

// ManagedResourceSpec says what is applied, and how.
type ManagedResourceSpec struct {
	// Class selects the gardener-resource-manager that is responsible: the one that was started with this class. Unset
	// means the class "resources". An object whose class changes is handed over.
	// +optional
	Class *string `json:"class,omitempty"`

	// SecretRefs names Secrets in the namespace of the ManagedResource. Every value in their data is one or more manifests
	// in YAML, separated by ---; values under keys ending in .br are compressed with Brotli.
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs"`

	// InjectLabels are labels that every object gets, and the pods of its template too.
	// +optional
	InjectLabels map[string]string `json:"injectLabels,omitempty"`

	// ForceOverwriteLabels says that labels which others put on the objects are removed. Defaults to false.
	// +optional
	ForceOverwriteLabels *bool `json:"forceOverwriteLabels,omitempty"`

	// ForceOverwriteAnnotations says that annotations which others put on the objects are removed. Defaults to false.
	// +optional
	ForceOverwriteAnnotations *bool `json:"forceOverwriteAnnotations,omitempty"`

	// KeepObjects says that the objects stay when the ManagedResource is deleted, or when they are no longer in the
	// Secrets. Defaults to false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`

	// Equivalences lists groups of kinds that are the same objects under different API groups. Moving a manifest from one
	// to the other then does not delete the object.
	// +optional
	Equivalences [][]metav1.GroupKind `json:"equivalences,omitempty"`

	// DeletePersistentVolumeClaims says that the PersistentVolumeClaims of a StatefulSet are deleted along with it.
	// Defaults to false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
}

// ManagedResourceStatus says how far the gardener-resource-manager came.
type ManagedResourceStatus struct {
	// Conditions are ResourcesApplied, ResourcesHealthy and ResourcesProgressing.
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the metadata.generation that was acted on last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Resources lists the objects that were applied. What is no longer in the Secrets is found by it and deleted.
	// +optional
	Resources []ObjectReference `json:"resources,omitempty"`

	// SecretsDataChecksum is the SHA-256 checksum of the data of the Secrets that was applied last. Others see by it
	// whether their change arrived.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
}

// ObjectReference names an object that was applied.
type ObjectReference struct {
	// The fields of ObjectReference belong here too.
	corev1.ObjectReference `json:",inline"`

	// Labels are the labels that the manifest requests.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are the annotations that the manifest requests.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	// ResourcesApplied says whether every object could be applied.
	ResourcesApplied corev1beta1.ConditionType = "ResourcesApplied"
	// ResourcesHealthy says whether every object is healthy.
	ResourcesHealthy corev1beta1.ConditionType = "ResourcesHealthy"
	// ResourcesProgressing says whether an object still rolls out.
	ResourcesProgressing corev1beta1.ConditionType = "ResourcesProgressing"
)

// Reasons of the conditions of a ManagedResource.
const (
	// ConditionApplySucceeded says that every object is applied.
	ConditionApplySucceeded = "ApplySucceeded"
	// ConditionApplyFailed says that an object could not be applied.
	ConditionApplyFailed = "ApplyFailed"
	// ConditionDecodingFailed says that a manifest could not be read.
	ConditionDecodingFailed = "DecodingFailed"
	// ConditionApplyProgressing says that objects are being applied.
	ConditionApplyProgressing = "ApplyProgressing"
	// ConditionDeletionFailed says that an object could not be deleted.
	ConditionDeletionFailed = "DeletionFailed"
	// ConditionDeletionPending says that objects are still being deleted.
	ConditionDeletionPending = "DeletionPending"
	// ReleaseOfOrphanedResourcesFailed says that objects which shall stay could not be released.
	ReleaseOfOrphanedResourcesFailed = "ReleaseOfOrphanedResourcesFailed"
	// ConditionManagedResourceIgnored says that the ManagedResource is ignored because its annotation requests it.
	ConditionManagedResourceIgnored = "ManagedResourceIgnored"
	// ConditionChecksPending says that health was not checked since the last change.
	ConditionChecksPending = "ChecksPending"
)
