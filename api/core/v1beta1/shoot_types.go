package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Shoot is a Kubernetes cluster of a user: its control plane runs on a seed, its nodes on an
// infrastructure.
type Shoot struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: Name and project name together have at most 21 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the desired cluster.
	// +optional
	Spec ShootSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardenlet last saw of the cluster.
	// +optional
	Status ShootStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ShootList is a list of Shoot objects.
type ShootList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []Shoot `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ShootTemplate is the template of a Shoot.
type ShootTemplate struct {
	// ObjectMeta is the metadata of the Shoot.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the desired cluster.
	// +optional
	Spec ShootSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// ShootSpec is the desired cluster.
type ShootSpec struct {
	// Addons are components that Gardener can install in the cluster. Only for clusters with the purpose evaluation.
	//
	// Deprecated: They will go away; install such components yourself.
	// +optional
	Addons *Addons `json:"addons,omitempty" protobuf:"bytes,1,opt,name=addons"`
	// CloudProfileName is the CloudProfile that the cluster uses.
	//
	// Deprecated: Use cloudProfile instead, which is kept in step.
	// +optional
	CloudProfileName *string `json:"cloudProfileName,omitempty" protobuf:"bytes,2,opt,name=cloudProfileName"`
	// DNS is the domain of the cluster and how its records are managed.
	// +optional
	DNS *DNS `json:"dns,omitempty" protobuf:"bytes,3,opt,name=dns"`
	// Extensions requests extensions of the cluster.
	// +optional
	Extensions []Extension `json:"extensions,omitempty" protobuf:"bytes,4,rep,name=extensions"`
	// Hibernation says when the cluster is hibernated, which means without nodes and control plane.
	// +optional
	Hibernation *Hibernation `json:"hibernation,omitempty" protobuf:"bytes,5,opt,name=hibernation"`
	// Kubernetes is the Kubernetes version and the configuration of its components.
	Kubernetes Kubernetes `json:"kubernetes" protobuf:"bytes,6,opt,name=kubernetes"`
	// Networking are the pod, node and service networks. Needed if there are workers.
	// +optional
	Networking *Networking `json:"networking,omitempty" protobuf:"bytes,7,opt,name=networking"`
	// Maintenance is when and what Gardener may change by itself.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty" protobuf:"bytes,8,opt,name=maintenance"`
	// Monitoring says which users get alerts.
	// +optional
	Monitoring *Monitoring `json:"monitoring,omitempty" protobuf:"bytes,9,opt,name=monitoring"`
	// Provider is the infrastructure and the workers on it.
	Provider Provider `json:"provider" protobuf:"bytes,10,opt,name=provider"`
	// Purpose says what the cluster is used for, which decides about its monitoring, logging and alerting.
	// "evaluation" is the default.
	// +optional
	Purpose *ShootPurpose `json:"purpose,omitempty" protobuf:"bytes,11,opt,name=purpose,casttype=ShootPurpose"`
	// Region is the region of the cluster. Cannot be changed.
	Region string `json:"region" protobuf:"bytes,12,opt,name=region"`
	// SecretBindingName is the SecretBinding with the infrastructure credentials.
	//
	// Deprecated: Use credentialsBindingName instead. Cannot be changed, except for being replaced by a
	// credentialsBindingName.
	// +optional
	SecretBindingName *string `json:"secretBindingName,omitempty" protobuf:"bytes,13,opt,name=secretBindingName"`
	// SeedName is the seed of the control plane. Set by the scheduler if unset; changed through the binding
	// subresource, which moves the control plane.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,14,opt,name=seedName"`
	// SeedSelector restricts the seeds for the control plane.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty" protobuf:"bytes,15,opt,name=seedSelector"`
	// Resources are objects in the project namespace that extensions or admission plugins of the cluster use.
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" protobuf:"bytes,16,rep,name=resources"`
	// Tolerations are the seed taints that do not keep the cluster away.
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,17,rep,name=tolerations"`
	// ExposureClassName is the ExposureClass that says how the API server is exposed. Cannot be changed.
	// +optional
	ExposureClassName *string `json:"exposureClassName,omitempty" protobuf:"bytes,18,opt,name=exposureClassName"`
	// SystemComponents configure components that run in every cluster.
	// +optional
	SystemComponents *SystemComponents `json:"systemComponents,omitempty" protobuf:"bytes,19,opt,name=systemComponents"`
	// ControlPlane are settings of the control plane as a whole.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty" protobuf:"bytes,20,opt,name=controlPlane"`
	// SchedulerName is the scheduler that chooses the seed. "default-scheduler" is the default. Cannot be changed.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty" protobuf:"bytes,21,opt,name=schedulerName"`
	// CloudProfile is the CloudProfile or NamespacedCloudProfile that the cluster uses.
	// +optional
	CloudProfile *CloudProfileReference `json:"cloudProfile,omitempty" protobuf:"bytes,22,opt,name=cloudProfile"`
	// CredentialsBindingName is the CredentialsBinding with the infrastructure credentials. Excludes
	// secretBindingName.
	// +optional
	CredentialsBindingName *string `json:"credentialsBindingName,omitempty" protobuf:"bytes,23,opt,name=credentialsBindingName"`
	// AccessRestrictions are the access restrictions that the cluster needs; its region and seed must meet them.
	// +optional
	AccessRestrictions []AccessRestrictionWithOptions `json:"accessRestrictions,omitempty" protobuf:"bytes,24,rep,name=accessRestrictions"`
}

// ShootPurpose is what a cluster is used for.
type ShootPurpose string

const (
	// ShootPurposeEvaluation is for trying things out. There is no alerting.
	ShootPurposeEvaluation ShootPurpose = "evaluation"
	// ShootPurposeTesting is for automated tests. There is no monitoring and logging.
	ShootPurposeTesting ShootPurpose = "testing"
	// ShootPurposeDevelopment is for development.
	ShootPurposeDevelopment ShootPurpose = "development"
	// ShootPurposeProduction is for real load.
	ShootPurposeProduction ShootPurpose = "production"
	// ShootPurposeInfrastructure is for clusters that the landscape itself needs. Only in the "garden" namespace.
	ShootPurposeInfrastructure ShootPurpose = "infrastructure"
)

// Addons are components that Gardener can install in a cluster.
type Addons struct {
	// KubernetesDashboard is the Kubernetes dashboard.
	// +optional
	KubernetesDashboard *KubernetesDashboard `json:"kubernetesDashboard,omitempty" protobuf:"bytes,1,opt,name=kubernetesDashboard"`
	// NginxIngress is an nginx ingress controller.
	// +optional
	NginxIngress *NginxIngress `json:"nginxIngress,omitempty" protobuf:"bytes,2,opt,name=nginxIngress"`
}

// Addon is what all addons have in common.
type Addon struct {
	// Enabled installs the addon.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
}

// KubernetesDashboard is the addon for the Kubernetes dashboard.
type KubernetesDashboard struct {
	// Addon says whether it is installed.
	Addon `json:",inline" protobuf:"bytes,2,opt,name=addon"`
	// AuthenticationMode is how users log in; only "token", the default.
	// +optional
	AuthenticationMode *string `json:"authenticationMode,omitempty" protobuf:"bytes,1,opt,name=authenticationMode"`
}

// NginxIngress is the addon for an nginx ingress controller.
type NginxIngress struct {
	// Addon says whether it is installed.
	Addon `json:",inline" protobuf:"bytes,1,opt,name=addon"`
	// LoadBalancerSourceRanges are the ranges, as CIDRs, that may reach the load balancer. All by default.
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty" protobuf:"bytes,2,rep,name=loadBalancerSourceRanges"`
	// Config is the content of the controller's ConfigMap.
	// +optional
	Config map[string]string `json:"config,omitempty" protobuf:"bytes,3,rep,name=config"`
	// ExternalTrafficPolicy is the policy of its service. "Cluster" is the default.
	// +optional
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty" protobuf:"bytes,4,opt,name=externalTrafficPolicy,casttype=k8s.io/api/core/v1.ServiceExternalTrafficPolicy"`
}

// DNS is the domain of a cluster and how its records are managed.
type DNS struct {
	// Domain is the domain below which the API server ("api.") is found. One of a default domain by default. Cannot
	// be changed once set.
	// +optional
	Domain *string `json:"domain,omitempty" protobuf:"bytes,1,opt,name=domain"`
	// Providers are the DNS providers. The one marked primary manages the record of the domain.
	//
	// Deprecated: Further providers are a matter of DNS extensions.
	// +optional
	Providers []DNSProvider `json:"providers,omitempty" protobuf:"bytes,2,rep,name=providers"`
}

// DNSProvider is a DNS provider.
type DNSProvider struct {
	// Domains restricts the domains that the provider manages.
	//
	// Deprecated: Not used any more.
	// +optional
	Domains *DNSIncludeExclude `json:"domains,omitempty" protobuf:"bytes,1,opt,name=domains"`
	// Primary says that the provider manages the domain of the cluster.
	//
	// Deprecated: Only the primary provider counts any more.
	// +optional
	Primary *bool `json:"primary,omitempty" protobuf:"varint,2,opt,name=primary"`
	// SecretName is the Secret with the provider's credentials in the project namespace.
	//
	// Deprecated: Use credentialsRef instead.
	// +optional
	SecretName *string `json:"secretName,omitempty" protobuf:"bytes,3,opt,name=secretName"`
	// Type is the provider type. "unmanaged" means that no records are managed for the cluster.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,4,opt,name=type"`
	// Zones restricts the hosted zones that the provider manages.
	//
	// Deprecated: Not used any more.
	// +optional
	Zones *DNSIncludeExclude `json:"zones,omitempty" protobuf:"bytes,5,opt,name=zones"`
	// CredentialsRef points to the Secret or WorkloadIdentity with the provider's credentials in the project
	// namespace.
	// +optional
	CredentialsRef *autoscalingv1.CrossVersionObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,6,opt,name=credentialsRef"`
}

// DNSIncludeExclude says what counts and what does not.
type DNSIncludeExclude struct {
	// Include is what counts.
	// +optional
	Include []string `json:"include,omitempty" protobuf:"bytes,1,rep,name=include"`
	// Exclude is what does not count.
	// +optional
	Exclude []string `json:"exclude,omitempty" protobuf:"bytes,2,rep,name=exclude"`
}

// Hibernation says when a cluster is hibernated.
type Hibernation struct {
	// Enabled hibernates the cluster when true, and wakes it up when false.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,1,opt,name=enabled"`
	// Schedules hibernate the cluster and wake it up at given times.
	// +optional
	Schedules []HibernationSchedule `json:"schedules,omitempty" protobuf:"bytes,2,rep,name=schedules"`
}

// HibernationSchedule hibernates a cluster and wakes it up. At least one of start and end is set.
type HibernationSchedule struct {
	// Start is when the cluster is hibernated, as cron expression.
	// +optional
	Start *string `json:"start,omitempty" protobuf:"bytes,1,opt,name=start"`
	// End is when the cluster wakes up, as cron expression.
	// +optional
	End *string `json:"end,omitempty" protobuf:"bytes,2,opt,name=end"`
	// Location is the time zone of both, such as "Europe/Berlin". UTC is the default.
	// +optional
	Location *string `json:"location,omitempty" protobuf:"bytes,3,opt,name=location"`
}

// Monitoring says which users get alerts.
type Monitoring struct {
	// Alerting configures alerts.
	// +optional
	Alerting *Alerting `json:"alerting,omitempty" protobuf:"bytes,1,opt,name=alerting"`
}

// Alerting configures alerts.
type Alerting struct {
	// EmailReceivers get alerts by mail.
	// +optional
	EmailReceivers []string `json:"emailReceivers,omitempty" protobuf:"bytes,1,rep,name=emailReceivers"`
}

// SystemComponents configure components that run in every cluster.
type SystemComponents struct {
	// CoreDNS is the DNS server of the cluster.
	// +optional
	CoreDNS *CoreDNS `json:"coreDNS,omitempty" protobuf:"bytes,1,opt,name=coreDNS"`
	// NodeLocalDNS is a DNS cache on each node.
	// +optional
	NodeLocalDNS *NodeLocalDNS `json:"nodeLocalDNS,omitempty" protobuf:"bytes,2,opt,name=nodeLocalDNS"`
}

// CoreDNS is the DNS server of a cluster.
type CoreDNS struct {
	// Autoscaling says how its replicas are scaled.
	// +optional
	Autoscaling *CoreDNSAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,1,opt,name=autoscaling"`
	// Rewriting spares clients superfluous queries.
	// +optional
	Rewriting *CoreDNSRewriting `json:"rewriting,omitempty" protobuf:"bytes,2,opt,name=rewriting"`
}

// CoreDNSAutoscaling says how the DNS server is scaled.
type CoreDNSAutoscaling struct {
	// Mode is the method. "horizontal" is the default.
	Mode CoreDNSAutoscalingMode `json:"mode" protobuf:"bytes,1,opt,name=mode,casttype=CoreDNSAutoscalingMode"`
}

// CoreDNSAutoscalingMode is how the DNS server is scaled.
type CoreDNSAutoscalingMode string

const (
	// CoreDNSAutoscalingModeHorizontal scales by CPU usage, with a HorizontalPodAutoscaler.
	CoreDNSAutoscalingModeHorizontal CoreDNSAutoscalingMode = "horizontal"
	// CoreDNSAutoscalingModeClusterProportional scales with the number of nodes and cores.
	CoreDNSAutoscalingModeClusterProportional CoreDNSAutoscalingMode = "cluster-proportional"
)

// CoreDNSRewriting spares clients superfluous queries.
type CoreDNSRewriting struct {
	// CommonSuffixes are domains below which a name is never one of the cluster, such as "gardener.cloud"; search
	// paths are cut off of such queries. At least two labels each, at most 5 entries.
	// +optional
	CommonSuffixes []string `json:"commonSuffixes,omitempty" protobuf:"bytes,1,rep,name=commonSuffixes"`
}

// NodeLocalDNS is a DNS cache on each node.
type NodeLocalDNS struct {
	// Enabled turns it on.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
	// ForceTCPToClusterDNS makes the cache talk to the cluster's DNS server over TCP. True by default.
	// +optional
	ForceTCPToClusterDNS *bool `json:"forceTCPToClusterDNS,omitempty" protobuf:"varint,2,opt,name=forceTCPToClusterDNS"`
	// ForceTCPToUpstreamDNS makes the cache talk to the infrastructure's DNS server over TCP. True by default.
	// +optional
	ForceTCPToUpstreamDNS *bool `json:"forceTCPToUpstreamDNS,omitempty" protobuf:"varint,3,opt,name=forceTCPToUpstreamDNS"`
	// DisableForwardToUpstreamDNS makes the cache query the cluster's DNS server for everything. False by default.
	// +optional
	DisableForwardToUpstreamDNS *bool `json:"disableForwardToUpstreamDNS,omitempty" protobuf:"varint,4,opt,name=disableForwardToUpstreamDNS"`
}

// ControlPlane are settings of the control plane as a whole.
type ControlPlane struct {
	// HighAvailability makes the control plane survive failures.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty" protobuf:"bytes,1,opt,name=highAvailability"`
	// Zones are the seed zones of the control plane, if the CloudProfile allows naming them. They can only
	// be changed together with the failure tolerance type: zones are added or removed.
	// +optional
	Zones []string `json:"zones,omitempty" protobuf:"bytes,2,rep,name=zones"`
}

// HighAvailability makes a control plane survive failures.
type HighAvailability struct {
	// FailureTolerance is what failures the control plane survives.
	FailureTolerance FailureTolerance `json:"failureTolerance" protobuf:"bytes,1,opt,name=failureTolerance"`
}

// FailureTolerance is what failures a control plane survives.
type FailureTolerance struct {
	// Type is what may fail. It can be changed, but not be removed.
	Type FailureToleranceType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=FailureToleranceType"`
}

// FailureToleranceType is what may fail without harm.
type FailureToleranceType string

const (
	// FailureToleranceTypeNode means that a node of the seed may fail.
	FailureToleranceTypeNode FailureToleranceType = "node"
	// FailureToleranceTypeZone means that a whole zone of the seed may fail.
	FailureToleranceTypeZone FailureToleranceType = "zone"
)
