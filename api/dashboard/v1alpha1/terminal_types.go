package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=terminals,singular=terminal,scope=Namespaced
// +kubebuilder:subresource:status

// Terminal is a pod in a host cluster with access to a target cluster, which the
// dashboard shows as a terminal in the browser.
type Terminal struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where the pod runs, and what it has access to.
	// +optional
	Spec TerminalSpec `json:"spec,omitempty"`

	// Status says how the dashboard can attach to it.
	// +optional
	Status TerminalStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// TerminalList is a list of Terminal objects.
type TerminalList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Terminal `json:"items"`
}

// TerminalSpec says where the pod of a terminal runs, and what it has access to.
type TerminalSpec struct {
	// Host is the cluster in which the pod runs.
	Host HostCluster `json:"host"`

	// Identifier distinguishes the terminals of a user, chosen by the dashboard.
	Identifier string `json:"identifier"`

	// Target is the cluster that the pod has access to.
	Target TargetCluster `json:"target"`
}

// HostCluster is the cluster in which the pod runs.
type HostCluster struct {
	// Credentials are the credentials that the controller uses for the cluster.
	Credentials ClusterCredentials `json:"credentials"`

	// Namespace is the namespace of the pod. Unset for a temporary one.
	// +optional
	Namespace *string `json:"namespace,omitempty"`

	// Pod describes the pod.
	Pod Pod `json:"pod"`

	// TemporaryNamespace makes the controller create the namespace and delete it with the terminal.
	// +optional
	TemporaryNamespace *bool `json:"temporaryNamespace,omitempty"`
}

// ClusterCredentials says which credentials the controller uses for a cluster. Exactly one field is set.
type ClusterCredentials struct {
	// ServiceAccountRef names a ServiceAccount of the garden cluster, for a token.
	// +optional
	ServiceAccountRef *corev1.ObjectReference `json:"serviceAccountRef,omitempty"`

	// ShootRef names the Shoot that the cluster is.
	// +optional
	ShootRef *ShootRef `json:"shootRef,omitempty"`
}

// ShootRef names a Shoot.
type ShootRef struct {
	// Name is the name of the Shoot.
	Name string `json:"name"`

	// Namespace is the namespace of the Shoot.
	Namespace string `json:"namespace"`
}

// Pod describes the pod of a terminal.
type Pod struct {
	// Container describes the container.
	// +optional
	Container *Container `json:"container,omitempty"`

	// ContainerImage is the image of the container. Deprecated: use container.image.
	// +optional
	ContainerImage string `json:"containerImage,omitempty"`

	// HostNetwork gives the pod the network of the node.
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`

	// HostPID lets the pod see the processes of the node.
	// +optional
	HostPID bool `json:"hostPID,omitempty"`

	// Labels are put on the pod.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// NodeSelector selects the node.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Privileged makes the container privileged. Deprecated: use container.privileged.
	// +optional
	Privileged bool `json:"privileged,omitempty"`
}

// Container describes the container of a terminal.
type Container struct {
	// Args are the arguments of the command.
	// +optional
	Args []string `json:"args,omitempty"`

	// Command is the command. Unset means the one of the image.
	// +optional
	Command []string `json:"command,omitempty"`

	// Image is the image.
	Image string `json:"image"`

	// Privileged makes the container privileged.
	// +optional
	Privileged bool `json:"privileged,omitempty"`

	// Resources are its resource requirements.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// TargetCluster is the cluster that the pod has access to.
type TargetCluster struct {
	// APIServer says how the API server of the cluster is reached. Unset means as the credentials say.
	// +optional
	APIServer *APIServer `json:"apiServer,omitempty"`

	// APIServerServiceRef names the Service of the API server. Deprecated: use apiServer.serviceRef.
	// +optional
	APIServerServiceRef *corev1.ObjectReference `json:"apiServerServiceRef,omitempty"`

	// Authorization says what the pod may do in the cluster.
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`

	// BindingKind is the kind of the binding for roleName. Deprecated: use authorization.roleBindings.
	// +kubebuilder:validation:Enum=ClusterRoleBinding;RoleBinding;""
	// +optional
	BindingKind BindingKind `json:"bindingKind,omitempty"`

	// CleanupProjectMembership makes the controller remove the ServiceAccount from the Project when no terminal needs it
	// any more.
	// +optional
	CleanupProjectMembership *bool `json:"cleanupProjectMembership,omitempty"`

	// Credentials are the credentials that the controller uses for the cluster.
	Credentials ClusterCredentials `json:"credentials"`

	// KubeconfigContextNamespace is the namespace that kubectl works with in the terminal.
	KubeconfigContextNamespace string `json:"kubeconfigContextNamespace"`

	// Namespace is the namespace of the ServiceAccount that the pod acts as. Unset for a temporary one.
	// +optional
	Namespace *string `json:"namespace,omitempty"`

	// RoleName is the role that the ServiceAccount gets. Deprecated: use authorization.roleBindings.
	// +optional
	RoleName string `json:"roleName,omitempty"`

	// TemporaryNamespace makes the controller create the namespace and delete it with the terminal.
	// +optional
	TemporaryNamespace *bool `json:"temporaryNamespace,omitempty"`
}

// APIServer says how the API server of a cluster is reached.
type APIServer struct {
	// CAData are the CA certificates that the pod trusts, in PEM.
	// +nullable
	// +optional
	CAData []byte `json:"caData,omitempty"`

	// Server is the URL of the API server.
	// +optional
	Server string `json:"server,omitempty"`

	// ServiceRef names the Service of the API server in the host cluster.
	// +optional
	ServiceRef *corev1.ObjectReference `json:"serviceRef,omitempty"`
}

// Authorization says what the pod may do in the target cluster.
type Authorization struct {
	// ProjectMemberships makes the ServiceAccount a member of Projects.
	// +optional
	ProjectMemberships []ProjectMembership `json:"projectMemberships,omitempty"`

	// RoleBindings binds the ServiceAccount to roles.
	// +optional
	RoleBindings []RoleBinding `json:"roleBindings,omitempty"`
}

// ProjectMembership makes the ServiceAccount a member of a Project.
type ProjectMembership struct {
	// ProjectName is the name of the Project.
	ProjectName string `json:"projectName"`

	// Roles are the roles in the Project.
	Roles []string `json:"roles"`
}

// RoleBinding binds the ServiceAccount to a role.
type RoleBinding struct {
	// BindingKind is ClusterRoleBinding or RoleBinding. Empty means RoleBinding.
	// +kubebuilder:validation:Enum=ClusterRoleBinding;RoleBinding;""
	BindingKind BindingKind `json:"bindingKind"`

	// NameSuffix is the suffix of the name of the binding.
	NameSuffix string `json:"nameSuffix"`

	// RoleRef names the role.
	RoleRef rbacv1.RoleRef `json:"roleRef"`
}

// TerminalStatus says how the dashboard can attach to the pod. The terminal controller writes it.
type TerminalStatus struct {
	// AttachServiceAccountName is the name of the ServiceAccount in the host cluster with which the dashboard attaches.
	// +optional
	AttachServiceAccountName *string `json:"attachServiceAccountName,omitempty"`

	// LastError describes why the last operation failed.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`

	// LastOperation describes what was done last.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`

	// PodName is the name of the pod.
	// +optional
	PodName *string `json:"podName,omitempty"`
}

// LastError describes why an operation failed.
type LastError struct {
	// Description explains the error for users.
	Description string `json:"description"`

	// LastUpdateTime is when it happened.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}

// LastOperation describes an operation.
type LastOperation struct {
	// Description explains the operation for users.
	Description string `json:"description"`

	// LastUpdateTime is when state changed last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`

	// State is Processing, Succeeded, Error or Failed.
	State string `json:"state"`

	// Type is Reconcile or Delete.
	Type string `json:"type"`
}

// BindingKind is the kind of a role binding.
type BindingKind string

const (
	// BindingKindClusterRoleBinding grants the role in every namespace.
	BindingKindClusterRoleBinding BindingKind = "ClusterRoleBinding"
	// BindingKindRoleBinding grants the role in one namespace.
	BindingKindRoleBinding BindingKind = "RoleBinding"
)
