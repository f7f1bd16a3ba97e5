// Package usercopy names what the gardenlet copies of users from the garden into the namespace of a control plane, so that who acts on
// Secrets of that namespace can tell these from those that Gardener and extensions make.
package usercopy

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// CloudProvider is the Secret with the credentials for the infrastructure.
const CloudProvider = constants.SecretNameCloudProvider

// dnsRecordPrefix starts the names of Secrets with credentials for DNS.
const dnsRecordPrefix = "dnsrecord-"

// DNSRecord is the name of the Secret with the credentials for a DNSRecord of a shoot, which is called "internal" or "external".
func DNSRecord(shoot, record string) string { return dnsRecordPrefix + shoot + "-" + record }

// Reference is the name of the copy of an object that spec.resources of a Shoot names. A WorkloadIdentity becomes a Secret.
func Reference(kind, name string) string {
	if kind == "WorkloadIdentity" {
		return constants.ReferencedWorkloadIdentityPrefix + name
	}
	return constants.ReferencedResourcesPrefix + name
}

// Is is whether an object in the namespace of a control plane is such a copy. Names tell it: extensions take others.
func Is(object metav1.Object) bool {
	name := object.GetName()
	if name == CloudProvider || object.GetLabels()[constants.GardenRole] == constants.GardenRoleResourceReference {
		return true
	}
	for _, prefix := range []string{dnsRecordPrefix, constants.ReferencedResourcesPrefix, constants.ReferencedWorkloadIdentityPrefix} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
