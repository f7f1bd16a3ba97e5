package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSRecordResource is the kind of the DNSRecord resource, as it is written in a ControllerRegistration.
const DNSRecordResource = "DNSRecord"

const (
	// DNSRecordInternalName is the suffix of the name of the DNSRecord for the internal domain of a shoot's API server.
	DNSRecordInternalName = "internal"
	// DNSRecordExternalName is the suffix of the name of the DNSRecord for the external domain of a shoot's API server.
	DNSRecordExternalName = "external"
)

// DNSRecordType is the type of a DNS record set.
type DNSRecordType string

const (
	// DNSRecordTypeA records hold IPv4 addresses.
	DNSRecordTypeA DNSRecordType = "A"
	// DNSRecordTypeAAAA records hold IPv6 addresses.
	DNSRecordTypeAAAA DNSRecordType = "AAAA"
	// DNSRecordTypeCNAME records hold one host name.
	DNSRecordTypeCNAME DNSRecordType = "CNAME"
	// DNSRecordTypeTXT records hold arbitrary text.
	DNSRecordTypeTXT DNSRecordType = "TXT"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dnsrecords,singular=dnsrecord,scope=Namespaced,shortName=dns
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Domain Name",type=string,JSONPath=".spec.name"
// +kubebuilder:printcolumn:name="Record Type",type=string,JSONPath=".spec.recordType"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// DNSRecord makes an extension keep a record set at a DNS provider.
type DNSRecord struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired record set.
	Spec DNSRecordSpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status DNSRecordStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// DNSRecordList is a list of DNSRecord objects.
type DNSRecordList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []DNSRecord `json:"items"`
}

// DNSRecordSpec describes the desired record set, and where.
type DNSRecordSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// SecretRef names the Secret with the credentials for the DNS provider.
	SecretRef corev1.SecretReference `json:"secretRef"`

	// Region is the region whose endpoint of the DNS provider is used, for providers that have several. Otherwise the
	// extension takes the region of the credentials or its default.
	// +optional
	Region *string `json:"region,omitempty"`

	// Zone is the ID of the hosted zone the record set belongs into. Unset, the extension picks the zone whose domain
	// matches the name best.
	// +optional
	Zone *string `json:"zone,omitempty"`

	// Name is the fully qualified domain name of the record set. Immutable.
	Name string `json:"name"`

	// RecordType is the type of the record set: A, AAAA, CNAME or TXT. Immutable.
	RecordType DNSRecordType `json:"recordType"`

	// Values are what the name resolves to: addresses of the family for A and AAAA, exactly one host name for CNAME, text
	// for TXT. At least one.
	Values []string `json:"values"`

	// TTL is how many seconds resolvers may cache the record set. At least 1. Unset, the extension takes 120.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`
}

// DNSRecordStatus says what the extension did about the record set.
type DNSRecordStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// Zone is the ID of the hosted zone that the record set is in. It is used if spec.zone is unset.
	// +optional
	Zone *string `json:"zone,omitempty"`
}
