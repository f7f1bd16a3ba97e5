package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Maintenance is when and what Gardener may change by itself.
type Maintenance struct {
	// AutoUpdate says which versions are updated.
	// +optional
	AutoUpdate *MaintenanceAutoUpdate `json:"autoUpdate,omitempty" protobuf:"bytes,1,opt,name=autoUpdate"`
	// TimeWindow is when it happens. Set to a random hour of the night if unset.
	// +optional
	TimeWindow *MaintenanceTimeWindow `json:"timeWindow,omitempty" protobuf:"bytes,2,opt,name=timeWindow"`
	// ConfineSpecUpdateRollout keeps changes of the spec until the next time window. False is the default.
	// +optional
	ConfineSpecUpdateRollout *bool `json:"confineSpecUpdateRollout,omitempty" protobuf:"varint,3,opt,name=confineSpecUpdateRollout"`
	// AutoRotation says which credentials are rotated.
	// +optional
	AutoRotation *MaintenanceAutoRotation `json:"autoRotation,omitempty" protobuf:"bytes,4,opt,name=autoRotation"`
}

// MaintenanceAutoUpdate says which versions are updated automatically.
type MaintenanceAutoUpdate struct {
	// KubernetesVersion updates the patch version of Kubernetes. True is the default.
	KubernetesVersion bool `json:"kubernetesVersion" protobuf:"varint,1,opt,name=kubernetesVersion"`
	// MachineImageVersion updates the machine images. True is the default.
	// +optional
	MachineImageVersion *bool `json:"machineImageVersion,omitempty" protobuf:"varint,2,opt,name=machineImageVersion"`
}

// MaintenanceTimeWindow is a window in every day. It takes at least 30 minutes and at most 6 hours.
type MaintenanceTimeWindow struct {
	// Begin is when it begins, as HHMMSS+ZONE, such as "220000+0100".
	// +kubebuilder:validation:Pattern=`([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9]([+](0[0-9]|1[0-4])|[-](0[0-9]|1[0-2]))00`
	Begin string `json:"begin" protobuf:"bytes,1,opt,name=begin"`
	// End is when it ends, as HHMMSS+ZONE.
	// +kubebuilder:validation:Pattern=`([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9]([+](0[0-9]|1[0-4])|[-](0[0-9]|1[0-2]))00`
	End string `json:"end" protobuf:"bytes,2,opt,name=end"`
}

// MaintenanceAutoRotation says what is rotated automatically.
type MaintenanceAutoRotation struct {
	// Credentials says which credentials are.
	// +optional
	Credentials *MaintenanceCredentialsAutoRotation `json:"credentials,omitempty" protobuf:"bytes,1,opt,name=credentials"`
}

// MaintenanceCredentialsAutoRotation says which credentials are rotated automatically.
type MaintenanceCredentialsAutoRotation struct {
	// Observability are the passwords of the monitoring and logging endpoints.
	// +optional
	Observability *MaintenanceRotationConfig `json:"observability,omitempty" protobuf:"bytes,1,opt,name=observability"`
	// SSHKeypair is the SSH key pair of the nodes.
	// +optional
	SSHKeypair *MaintenanceRotationConfig `json:"sshKeypair,omitempty" protobuf:"bytes,2,opt,name=sshKeypair"`
	// ETCDEncryptionKey is the key with which etcd content is encrypted.
	// +optional
	ETCDEncryptionKey *MaintenanceRotationConfig `json:"etcdEncryptionKey,omitempty" protobuf:"bytes,3,opt,name=etcdEncryptionKey"`
}

// MaintenanceRotationConfig says how often a credential is rotated.
type MaintenanceRotationConfig struct {
	// RotationPeriod is the time between two rotations, between 30 minutes and 90 days. "0s" turns it off; "168h" is
	// the default.
	// +optional
	RotationPeriod *metav1.Duration `json:"rotationPeriod,omitempty" protobuf:"bytes,1,opt,name=rotationPeriod"`
}

// LastMaintenance is what the last maintenance did.
type LastMaintenance struct {
	// Description says what was done.
	Description string `json:"description" protobuf:"bytes,1,opt,name=description"`
	// TriggeredTime is when it was done.
	TriggeredTime metav1.Time `json:"triggeredTime" protobuf:"bytes,2,opt,name=triggeredTime"`
	// State is how it ended.
	State LastOperationState `json:"state" protobuf:"bytes,3,opt,name=state,casttype=LastOperationState"`
	// FailureReason says why it failed.
	// +optional
	FailureReason *string `json:"failureReason,omitempty" protobuf:"bytes,4,opt,name=failureReason"`
}
