package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeed turns a shoot into a seed: the parent gardenlet deploys a gardenlet into it. Only in the "garden"
// namespace.
type ManagedSeed struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: The name is that of the Seed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec says which shoot becomes a seed, and how.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the parent gardenlet last saw.
	// +optional
	Status ManagedSeedStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManagedSeedList is a list of ManagedSeed objects.
type ManagedSeedList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ManagedSeed `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ManagedSeedTemplate is the template of a ManagedSeed.
type ManagedSeedTemplate struct {
	// ObjectMeta is the metadata of the ManagedSeed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec says which shoot becomes a seed, and how.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// ManagedSeedSpec says which shoot becomes a seed, and how.
type ManagedSeedSpec struct {
	// Shoot is the shoot. Cannot be changed. Left out in the template of a ManagedSeedSet.
	// +optional
	Shoot *Shoot `json:"shoot,omitempty" protobuf:"bytes,1,opt,name=shoot"`
	// Gardenlet is the gardenlet that is deployed into the shoot.
	Gardenlet GardenletConfig `json:"gardenlet" protobuf:"bytes,3,opt,name=gardenlet"`
}

// Shoot names a shoot in the namespace of the ManagedSeed.
type Shoot struct {
	// Name is the name of the shoot.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// GardenletConfig is the gardenlet that is deployed into a shoot.
type GardenletConfig struct {
	// Deployment is the deployment of the gardenlet.
	// +optional
	Deployment *GardenletDeployment `json:"deployment,omitempty" protobuf:"bytes,1,opt,name=deployment"`
	// Config is its GardenletConfiguration. Its seedConfig must be set.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
	// Bootstrap is how the gardenlet gets its first credentials. "BootstrapToken" is the default. Cannot be changed.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty" protobuf:"bytes,3,opt,name=bootstrap,casttype=Bootstrap"`
	// MergeWithParent says whether deployment and configuration of the parent gardenlet are the defaults. True is the
	// default. Cannot be changed.
	// +optional
	MergeWithParent *bool `json:"mergeWithParent,omitempty" protobuf:"varint,4,opt,name=mergeWithParent"`
}

// Bootstrap is how a gardenlet gets its first credentials for the garden.
type Bootstrap string

const (
	// BootstrapServiceAccount uses the token of a service account that is created for it.
	BootstrapServiceAccount Bootstrap = "ServiceAccount"
	// BootstrapToken uses a bootstrap token that is created for it.
	BootstrapToken Bootstrap = "BootstrapToken"
	// BootstrapNone leaves it to the configuration, which has a kubeconfig.
	BootstrapNone Bootstrap = "None"
)

// GardenletDeployment is the deployment of a gardenlet.
type GardenletDeployment struct {
	// ReplicaCount is how many replicas there are. 2 is the default.
	// +optional
	ReplicaCount *int32 `json:"replicaCount,omitempty" protobuf:"varint,1,opt,name=replicaCount"`
	// RevisionHistoryLimit is how many old ReplicaSets are kept. 2 is the default.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"varint,2,opt,name=revisionHistoryLimit"`
	// ServiceAccountName is the service account of the pods. One is created if unset.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty" protobuf:"bytes,3,opt,name=serviceAccountName"`
	// Image is the image of the gardenlet. That of the parent if unset.
	// +optional
	Image *Image `json:"image,omitempty" protobuf:"bytes,4,opt,name=image"`
	// Resources are the requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty" protobuf:"bytes,5,opt,name=resources"`
	// PodLabels are put on the pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty" protobuf:"bytes,6,rep,name=podLabels"`
	// PodAnnotations are put on the pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty" protobuf:"bytes,7,rep,name=podAnnotations"`
	// AdditionalVolumes are added to the pods.
	// +optional
	AdditionalVolumes []corev1.Volume `json:"additionalVolumes,omitempty" protobuf:"bytes,8,rep,name=additionalVolumes"`
	// AdditionalVolumeMounts are added to the container.
	// +optional
	AdditionalVolumeMounts []corev1.VolumeMount `json:"additionalVolumeMounts,omitempty" protobuf:"bytes,9,rep,name=additionalVolumeMounts"`
	// Env are added to the environment of the container.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty" protobuf:"bytes,10,rep,name=env"`
	// Tolerations are the node taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty" protobuf:"bytes,11,rep,name=tolerations"`
	// EnableHealthProbes says whether the pods have liveness and readiness probes. True is the default.
	// +optional
	EnableHealthProbes *bool `json:"enableHealthProbes,omitempty" protobuf:"varint,12,opt,name=enableHealthProbes"`
}

// Image is a container image. Either ref is set, or repository and tag.
type Image struct {
	// Repository is the reference without the tag.
	// +optional
	Repository *string `json:"repository,omitempty" protobuf:"bytes,1,opt,name=repository"`
	// Tag is the tag.
	// +optional
	Tag *string `json:"tag,omitempty" protobuf:"bytes,2,opt,name=tag"`
	// PullPolicy is when it is pulled. "IfNotPresent" is the default, and "Always" for the tag "latest".
	// +optional
	PullPolicy *corev1.PullPolicy `json:"pullPolicy,omitempty" protobuf:"bytes,3,opt,name=pullPolicy,casttype=k8s.io/api/core/v1.PullPolicy"`
	// Ref is the whole reference.
	// +optional
	Ref *string `json:"ref,omitempty" protobuf:"bytes,4,opt,name=ref"`
}

// ManagedSeedStatus is what the parent gardenlet last saw.
type ManagedSeedStatus struct {
	// Conditions are the observations about the seed: ShootReconciled, SeedRegistered and GardenletHealthy.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// ObservedGeneration is the generation of the spec that the gardenlet last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,2,opt,name=observedGeneration"`
}
