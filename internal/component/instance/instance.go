// Package instance says which cluster a control plane is for. Those of shoots and of a virtual garden have the same components, with other names
// and priorities: a virtual garden has its control plane beside other components in namespace garden.
package instance

import "strings"

// Kind is the kind of cluster that a control plane is for. The zero value is a shoot.
type Kind string

const (
	// Shoot is a shoot.
	Shoot Kind = ""
	// VirtualGarden is the cluster that serves the garden API.
	VirtualGarden Kind = "virtual-garden"
)

// Name returns the name of a component's Deployment and Service, such as kube-apiserver and virtual-garden-kube-apiserver.
func (k Kind) Name(component string) string {
	if k == Shoot {
		return component
	}
	return string(k) + "-" + component
}

// Noun returns what the cluster is called in titles of tasks.
func (k Kind) Noun() string {
	if k == Shoot {
		return "shoot"
	}
	return "virtual garden"
}

// PriorityClass returns the name of the PriorityClass that corresponds to one of a shoot's control plane, such as gardener-system-500 and
// gardener-garden-system-500.
func (k Kind) PriorityClass(ofShoot string) string {
	if k == Shoot {
		return ofShoot
	}
	return strings.Replace(ofShoot, "gardener-system-", "gardener-garden-system-", 1)
}
