package plan

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Simulator starts simulations of the scheduler.
type Simulator interface {
	// Start returns a simulation of a cluster with some nodes.
	Start(nodes []Occupied) Simulation
}

// Simulation is a cluster in which pods are placed as the kube-scheduler would, without anything being written.
type Simulation interface {
	// Fork returns a copy. What is changed in one of both does not change the other.
	Fork() Simulation
	// Add adds a node with its pods.
	Add(node Occupied)
	// Remove removes a node with its pods.
	Remove(name string)
	// Place puts a pod on the first of the named nodes that it fits on, and returns its name. The error is a *NotFit if there is none.
	Place(ctx context.Context, pod *corev1.Pod, nodes []string) (string, error)
}

// Occupied is a node with the pods that run on it.
type Occupied struct {
	Node *corev1.Node
	Pods []*corev1.Pod
}

// NotFit says why a pod fits on none of some nodes.
type NotFit struct {
	// Reasons are what the scheduler says about one of the nodes.
	Reasons []string
}

// Error implements error.
func (e *NotFit) Error() string {
	if len(e.Reasons) == 0 {
		return "it fits on no node"
	}
	return strings.Join(e.Reasons, ", ")
}
