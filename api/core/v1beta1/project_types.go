package v1beta1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Project is a tenant of a garden: a namespace with members, where shoots and the credentials for them are kept.
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: The name has at most 10 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the desired project.
	// +optional
	Spec ProjectSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the project controllers last saw.
	// +optional
	Status ProjectStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProjectList is a list of Project objects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []Project `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ProjectSpec is the desired project.
type ProjectSpec struct {
	// CreatedBy is the user who created the project. Set by the API server when it is unset; cannot be changed.
	// +optional
	CreatedBy *rbacv1.Subject `json:"createdBy,omitempty" protobuf:"bytes,1,opt,name=createdBy"`
	// Description says what the project is about.
	// +optional
	Description *string `json:"description,omitempty" protobuf:"bytes,2,opt,name=description"`
	// Owner is the user who is responsible for the project. It is a member with the role "owner"; the creator is the default.
	// +optional
	Owner *rbacv1.Subject `json:"owner,omitempty" protobuf:"bytes,3,opt,name=owner"`
	// Purpose says why the project exists.
	// +optional
	Purpose *string `json:"purpose,omitempty" protobuf:"bytes,4,opt,name=purpose"`
	// Members are the users, groups and service accounts that have access, and their roles.
	// +optional
	Members []ProjectMember `json:"members,omitempty" protobuf:"bytes,5,rep,name=members"`
	// Namespace is the namespace of the project. It is created if it does not exist; "garden-" and the project name
	// is the default. Cannot be changed once set.
	// +optional
	Namespace *string `json:"namespace,omitempty" protobuf:"bytes,6,opt,name=namespace"`
	// Tolerations says which seed taints the shoots of the project may tolerate.
	// +optional
	Tolerations *ProjectTolerations `json:"tolerations,omitempty" protobuf:"bytes,7,opt,name=tolerations"`
	// DualApprovalForDeletion lists resources whose deletion has to be confirmed by a second person.
	// +optional
	DualApprovalForDeletion []DualApprovalForDeletion `json:"dualApprovalForDeletion,omitempty" protobuf:"bytes,8,rep,name=dualApprovalForDeletion"`
}

// ProjectMember is a user, group or ServiceAccount with access to a project.
type ProjectMember struct {
	// Subject is the user, group or service account.
	rbacv1.Subject `json:",inline" protobuf:"bytes,1,opt,name=subject"`
	// Role is the first role: "owner", "admin", "viewer", "uam", "serviceaccountmanager" or "extension:..." .
	// "viewer" is the default if roles is empty as well.
	Role string `json:"role" protobuf:"bytes,2,opt,name=role"`
	// Roles are further roles. A role may be given once.
	// +optional
	Roles []string `json:"roles,omitempty" protobuf:"bytes,3,rep,name=roles"`
}

// ProjectTolerations says which seed taints the shoots of a project may tolerate.
type ProjectTolerations struct {
	// Defaults are added to every shoot of the project when it is created. They have to be allowed by the whitelist.
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Defaults []Toleration `json:"defaults,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,1,rep,name=defaults"`
	// Whitelist are the tolerations that shoots of the project may have, besides those that the landscape allows
	// everyone.
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Whitelist []Toleration `json:"whitelist,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,2,rep,name=whitelist"`
}

// DualApprovalForDeletion makes the deletion of resources need the approval of a second user.
type DualApprovalForDeletion struct {
	// Resource is the resource in the plural; only "shoots" is supported.
	Resource string `json:"resource" protobuf:"bytes,1,opt,name=resource"`
	// Selector restricts this to objects with fitting labels.
	Selector metav1.LabelSelector `json:"selector" protobuf:"bytes,2,opt,name=selector"`
	// IncludeServiceAccounts says whether this counts for deletions by service accounts too. True is the default.
	// +optional
	IncludeServiceAccounts *bool `json:"includeServiceAccounts,omitempty" protobuf:"varint,3,opt,name=includeServiceAccounts"`
}

// ProjectStatus is what the project controllers last saw.
type ProjectStatus struct {
	// ObservedGeneration is the generation of the spec that the controller last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`
	// Phase is the state of the project as a whole.
	// +optional
	Phase ProjectPhase `json:"phase,omitempty" protobuf:"bytes,2,opt,name=phase,casttype=ProjectPhase"`
	// StaleSinceTimestamp is when the project was first found to be unused.
	// +optional
	StaleSinceTimestamp *metav1.Time `json:"staleSinceTimestamp,omitempty" protobuf:"bytes,3,opt,name=staleSinceTimestamp"`
	// StaleAutoDeleteTimestamp is when the project will be deleted if it stays unused.
	// +optional
	StaleAutoDeleteTimestamp *metav1.Time `json:"staleAutoDeleteTimestamp,omitempty" protobuf:"bytes,4,opt,name=staleAutoDeleteTimestamp"`
	// LastActivityTimestamp is when something in the project was last used.
	// +optional
	LastActivityTimestamp *metav1.Time `json:"lastActivityTimestamp,omitempty" protobuf:"bytes,5,opt,name=lastActivityTimestamp"`
	// Conditions are the observations about the project.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,6,rep,name=conditions"`
}

// ProjectPhase is the state of a project as a whole.
type ProjectPhase string

const (
	// ProjectPending means that the namespace is being prepared.
	ProjectPending ProjectPhase = "Pending"
	// ProjectReady means that the project can be used.
	ProjectReady ProjectPhase = "Ready"
	// ProjectFailed means that the namespace could not be prepared; it is tried again.
	ProjectFailed ProjectPhase = "Failed"
	// ProjectTerminating means that the project is being deleted.
	ProjectTerminating ProjectPhase = "Terminating"
)
