package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SeedDNS is which DNS zones and providers a seed uses.
type SeedDNS struct {
	// Provider manages the record of the seed's ingress domain.
	// +optional
	Provider *SeedDNSProvider `json:"provider,omitempty" protobuf:"bytes,2,opt,name=provider"`
	// Internal is the domain for the API server names that components of shoots use.
	// +optional
	Internal *SeedDNSProviderConfig `json:"internal,omitempty" protobuf:"bytes,3,opt,name=internal"`
	// Defaults are domains from which shoots without a domain of their own get one.
	// +optional
	Defaults []SeedDNSProviderConfig `json:"defaults,omitempty" protobuf:"bytes,4,rep,name=defaults"`
}

// SeedDNSProvider is a DNS provider with credentials.
type SeedDNSProvider struct {
	// Type is the provider type.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// CredentialsRef points to a Secret or WorkloadIdentity with access to the DNS provider.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,5,opt,name=credentialsRef"`
}

// SeedDNSProviderConfig is a domain and the provider that manages it.
type SeedDNSProviderConfig struct {
	// Type is the provider type.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Domain is the domain.
	Domain string `json:"domain" protobuf:"bytes,2,opt,name=domain"`
	// Zone is the ID of the hosted zone, for providers that cannot find it.
	// +optional
	Zone *string `json:"zone,omitempty" protobuf:"bytes,3,opt,name=zone"`
	// CredentialsRef points to a Secret or WorkloadIdentity with access to the DNS provider.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef" protobuf:"bytes,4,opt,name=credentialsRef"`
}
