package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hosts,singular=host,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="What the host is used for."
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.machineType`,description="The machine type."
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.zone`,description="The zone."
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.claim.namespace`,description="The control plane whose machine it is."
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.status.claim.name`,description="The machine that it is."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="What has failed."
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.capacity.cpu`,description="Its CPUs.",priority=1
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.capacity.memory`,description="Its memory.",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name is the hostname of the host, which has at most 63 characters"

// Host is a server that may become a machine of a shoot. It is in the cluster of the seed and belongs to its operator: control planes of shoots have no
// permission for it. Its name is the hostname of the server, and that of the Node. Its labels are for the selectors of worker pools.
type Host struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the server is reached, and what for it is used. Set by operators.
	Spec HostSpec `json:"spec"`

	// Status is written by provider-hosts only.
	// +optional
	Status HostStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// HostList is a list of Host objects.
type HostList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Host `json:"items"`
}

// HostSpec says how a server is reached, and what for it is used.
type HostSpec struct {
	// Address is the IP address or the DNS name at which the seed reaches the SSH server.
	// +kubebuilder:validation:MinLength=1
	Address string `json:"address"`

	// Port is that of the SSH server.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// User is who logs in: root, or a user who may run everything by sudo without a password. gardener is refused: nodes manage a user of this name, and
	// cleaning removes it.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]*$`
	// +kubebuilder:validation:XValidation:rule="self != 'gardener'",message="nodes manage the user gardener: use another one"
	User string `json:"user,omitempty"`

	// HostKey is the public key of the SSH server, as in /etc/ssh/ssh_host_ed25519_key.pub: "ssh-ed25519 AAAA...". A server with another key is refused.
	// There is no trust on first use: it is required.
	// +kubebuilder:validation:MinLength=1
	HostKey string `json:"hostKey"`

	// KeySecretRef names the Secret with the private key of the user, in the key ssh-privatekey as in Secrets of the type kubernetes.io/ssh-auth.
	KeySecretRef corev1.SecretReference `json:"keySecretRef"`

	// MachineType is the machine type of the CloudProfile that the server is.
	// +kubebuilder:validation:MinLength=1
	MachineType string `json:"machineType"`

	// Zone is the zone of the CloudProfile that the server is in. A pool without zones takes hosts of all zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Namespaces are patterns of the namespaces of control planes whose machine the server may become, such as "shoot--dev--*" for all shoots of the project
	// dev. Empty means all.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`

	// Unschedulable says that the server is not handed out. A machine that it is stays.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`
}

// HostPhase is what a host is used for.
type HostPhase string

const (
	// HostPending hosts have not been checked, or not since their spec was changed.
	HostPending HostPhase = "Pending"
	// HostAvailable hosts may be claimed.
	HostAvailable HostPhase = "Available"
	// HostClaimed hosts are machines, or about to become one.
	HostClaimed HostPhase = "Claimed"
	// HostCleaning hosts are no machines any more. What is left of one is being removed.
	HostCleaning HostPhase = "Cleaning"
	// HostFailed hosts are never handed out. The message says why. The annotation gardener.cloud/operation=clean has them cleaned again; one that could not be
	// reached is cleaned when it comes back.
	HostFailed HostPhase = "Failed"
)

// OperationClean is a value of the annotation gardener.cloud/operation: a failed host is cleaned.
const OperationClean = "clean"

// ConditionReachable is the type of the condition that says whether the last connection to a host succeeded.
const ConditionReachable = "Reachable"

// HostFinalizer is on Hosts, so that one that is in use is not deleted, and on HostClaims until their host is released.
const HostFinalizer = "hosts.provider.extensions.gardener.cloud/provider-hosts"

// HostStatus is what is known of a server. Written by provider-hosts.
type HostStatus struct {
	// Phase is what the host is used for. Empty means Pending.
	// +optional
	Phase HostPhase `json:"phase,omitempty"`

	// PhaseSince is when the phase began.
	// +optional
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`

	// Message says why it has failed, or why it has no user data yet.
	// +optional
	Message string `json:"message,omitempty"`

	// Claim is the HostClaim whose machine it is.
	// +optional
	Claim *Claimant `json:"claim,omitempty"`

	// Capacity are the CPUs and the memory of the server, as its kernel reports them.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Conditions has the condition Reachable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Claimant is the HostClaim whose machine a host is.
type Claimant struct {
	// Namespace is that of the control plane.
	Namespace string `json:"namespace"`

	// Name is that of the HostClaim, and of the Machine.
	Name string `json:"name"`

	// UID distinguishes it from others of this name.
	UID types.UID `json:"uid"`

	// Provisioned says that the server has got the user data.
	// +optional
	Provisioned bool `json:"provisioned,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostclaims,singular=hostclaim,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.machineType`,description="The machine type."
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.zone`,description="The zone."
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.hostName`,description="The host that it has."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="Why it has none."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// HostClaim is a machine of a shoot. The driver beside the machine-controller-manager creates it in the namespace of the control plane, and provider-hosts
// finds a Host for it, or cleans that one when the claim is deleted. So control planes have neither SSH keys nor permissions for Hosts.
type HostClaim struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which hosts fit. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Spec HostClaimSpec `json:"spec"`

	// Status is written by provider-hosts only.
	// +optional
	Status HostClaimStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// HostClaimList is a list of HostClaim objects.
type HostClaimList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []HostClaim `json:"items"`
}

// HostClaimSpec says which hosts fit, and what they run.
type HostClaimSpec struct {
	MachineProviderSpec `json:",inline"`

	// UserDataSecretName names the Secret in the same namespace whose key userData the host runs.
	UserDataSecretName string `json:"userDataSecretName"`
}

// MachineProviderSpec is the providerSpec of a MachineClass whose machines are hosts.
type MachineProviderSpec struct {
	// MachineType is the machine type of the hosts. Required.
	// +kubebuilder:validation:MinLength=1
	MachineType string `json:"machineType"`

	// Zone is the zone of the hosts. Empty means any.
	// +optional
	Zone string `json:"zone,omitempty"`

	// HostSelector are labels that the hosts have.
	// +optional
	HostSelector map[string]string `json:"hostSelector,omitempty"`
}

// HostClaimStatus is the host of a claim. Written by provider-hosts.
type HostClaimStatus struct {
	// HostName is the host that is reserved for the claim.
	// +optional
	HostName string `json:"hostName,omitempty"`

	// Bound says that the host is the machine of this claim and of no other.
	// +optional
	Bound bool `json:"bound,omitempty"`

	// Lost says that the host, which was bound, is not the machine any more.
	// +optional
	Lost bool `json:"lost,omitempty"`

	// Address is where the host is reached.
	// +optional
	Address string `json:"address,omitempty"`

	// Message says why there is no host.
	// +optional
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkerConfig is the providerConfig of a worker pool whose machines are hosts.
type WorkerConfig struct {
	metav1.TypeMeta `json:",inline"`

	// HostSelector are labels that the hosts of the pool have.
	// +optional
	HostSelector map[string]string `json:"hostSelector,omitempty"`
}

// MachineProvider is the value of MachineClass.provider for machines that are hosts.
const MachineProvider = "hosts"

// ProviderIDPrefix begins a provider ID. The name of the host follows.
const ProviderIDPrefix = "hosts:///"
