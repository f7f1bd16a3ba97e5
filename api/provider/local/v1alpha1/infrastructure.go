package v1alpha1

import "strings"

// infrastructurePrefix begins the names of namespaces with machines.
const infrastructurePrefix = "infra-"

// InfrastructureNamespace returns the namespace with the machines of the shoot whose control plane is in a namespace of a seed. It may be in another
// cluster.
func InfrastructureNamespace(controlPlane string) string { return infrastructurePrefix + controlPlane }

// MachineLabels returns labels that all machines in it have, which are pods, and nothing else.
func MachineLabels() map[string]string { return map[string]string{"app": "machine"} }

// BastionLabels returns labels that all bastions in it have, which are pods, and nothing else.
func BastionLabels() map[string]string { return map[string]string{"app": "bastion"} }

// ExposureLabels are the labels of the load balancers of SelfHostedShootExposures beside the machines.
func ExposureLabels() map[string]string { return map[string]string{"app": "exposure"} }

// ControlPlaneOf returns the namespace of the control plane whose machines are in a namespace, and whether that has machines.
func ControlPlaneOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, infrastructurePrefix)
}
