package v1alpha1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=persistentvolumeclaimautoscalers,singular=persistentvolumeclaimautoscaler,scope=Namespaced,shortName=pvca
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="AutoscalerName",type=string,JSONPath=".spec.autoscalerName"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=".spec.targetRef.name"

// PersistentVolumeClaimAutoscaler makes the pvc-autoscaler enlarge the volumes of a workload before they are full.
type PersistentVolumeClaimAutoscaler struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which volumes grow, and how.
	// +optional
	Spec PersistentVolumeClaimAutoscalerSpec `json:"spec,omitempty"`

	// Status says how full they are.
	// +optional
	Status PersistentVolumeClaimAutoscalerStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PersistentVolumeClaimAutoscalerList is a list of PersistentVolumeClaimAutoscaler objects.
type PersistentVolumeClaimAutoscalerList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []PersistentVolumeClaimAutoscaler `json:"items"`
}

// PersistentVolumeClaimAutoscalerSpec says which volumes grow, and how.
type PersistentVolumeClaimAutoscalerSpec struct {
	// AutoscalerName selects the pvc-autoscaler that is responsible. Empty means the default one. Defaults to the empty
	// string.
	// +kubebuilder:default=""
	// +optional
	AutoscalerName string `json:"autoscalerName,omitempty"`

	// TargetRef names the workload whose volumes grow, for example a StatefulSet.
	TargetRef autoscalingv1.CrossVersionObjectReference `json:"targetRef"`

	// VolumePolicies says how the volumes grow. The first one that matches a volume counts.
	// +kubebuilder:validation:MinItems=1
	VolumePolicies []VolumePolicy `json:"volumePolicies"`
}

// VolumePolicy says how volumes grow.
type VolumePolicy struct {
	// Match says which volumes it is about. Defaults to all of them.
	// +kubebuilder:default={}
	// +optional
	Match VolumeMatch `json:"match,omitempty"`

	// MaxCapacity is the size that volumes do not grow beyond.
	MaxCapacity resource.Quantity `json:"maxCapacity"`

	// ScaleUp says when volumes grow, and by how much. The default is 10 percent, at least 1Gi, when they are 80 percent
	// full.
	// +kubebuilder:default={}
	// +optional
	ScaleUp ScalingRules `json:"scaleUp,omitempty"`
}

// VolumeMatch says which volumes a policy is about.
type VolumeMatch struct {
	// Name is a pattern for the name of the PersistentVolumeClaim, in which * stands for anything. Defaults to *.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:default="*"
	// +optional
	Name string `json:"name,omitempty"`
}

// ScalingRules says when volumes grow, and by how much.
type ScalingRules struct {
	// CooldownDuration is the least time between two enlargements of a volume.
	// +optional
	CooldownDuration *metav1.Duration `json:"cooldownDuration,omitempty"`

	// MinStepAbsolute is the least amount that a volume grows by. Defaults to 1Gi.
	// +kubebuilder:default="1Gi"
	// +optional
	MinStepAbsolute *resource.Quantity `json:"minStepAbsolute,omitempty"`

	// StepPercent is the share of its size that a volume grows by. Defaults to 10.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=10
	// +optional
	StepPercent *int32 `json:"stepPercent,omitempty"`

	// UtilizationThresholdPercent is the share of used space or inodes above which a volume grows. Defaults to 80.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=80
	// +optional
	UtilizationThresholdPercent *int32 `json:"utilizationThresholdPercent,omitempty"`
}

// PersistentVolumeClaimAutoscalerStatus says how full the volumes are. The pvc-autoscaler writes it.
type PersistentVolumeClaimAutoscalerStatus struct {
	// Conditions are the conditions of the autoscaler.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastCheck is when the volumes were checked last.
	// +optional
	LastCheck *metav1.Time `json:"lastCheck,omitempty"`

	// NextCheck is when they will be checked next.
	// +optional
	NextCheck *metav1.Time `json:"nextCheck,omitempty"`

	// VolumeRecommendations describes the volumes one by one.
	// +optional
	VolumeRecommendations []VolumeRecommendation `json:"volumeRecommendations,omitempty"`
}

// VolumeRecommendation describes a volume.
type VolumeRecommendation struct {
	// Current is how it is.
	// +optional
	Current CurrentVolumeStatus `json:"current,omitempty"`

	// LastResizeTime is when it grew last.
	// +optional
	LastResizeTime *metav1.Time `json:"lastResizeTime,omitempty"`

	// Name is the name of the PersistentVolumeClaim.
	Name string `json:"name"`

	// Target is how it shall be.
	// +optional
	Target TargetVolumeStatus `json:"target,omitempty"`
}

// CurrentVolumeStatus says how a volume is.
type CurrentVolumeStatus struct {
	// Size is its size.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// UsedInodesPercent is the share of inodes that are in use.
	// +optional
	UsedInodesPercent *int32 `json:"usedInodesPercent,omitempty"`

	// UsedSpacePercent is the share of space that is in use.
	// +optional
	UsedSpacePercent *int32 `json:"usedSpacePercent,omitempty"`
}

// TargetVolumeStatus says how a volume shall be.
type TargetVolumeStatus struct {
	// Size is its size.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}
