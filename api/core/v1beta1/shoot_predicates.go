package v1beta1

import (
	"slices"

	"k8s.io/utils/ptr"
)

// Workerless reports whether a shoot has no worker pools: it is a control plane only, without nodes and networks.
func (s *Shoot) Workerless() bool { return s.Spec.Workerless() }

// Workerless reports whether a shoot with this spec has no worker pools.
func (s *ShootSpec) Workerless() bool { return len(s.Provider.Workers) == 0 }

// WorkerZones returns the zones of all worker pools, each once.
func (s *ShootSpec) WorkerZones() []string {
	var zones []string
	for i := range s.Provider.Workers {
		for _, zone := range s.Provider.Workers[i].Zones {
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
	}
	return zones
}

// HibernationWanted reports whether the spec asks for hibernation. status.hibernated says whether the shoot is hibernated now.
func (s *Shoot) HibernationWanted() bool { return s.Spec.HibernationWanted() }

// HibernationWanted reports whether a shoot with this spec is to be hibernated.
func (s *ShootSpec) HibernationWanted() bool {
	return s.Hibernation != nil && ptr.Deref(s.Hibernation.Enabled, false)
}

// ClusterAutoscalerWanted reports whether the number of nodes of a shoot follows its pods: a worker pool has a maximum above its minimum.
func (s *Shoot) ClusterAutoscalerWanted() bool {
	return slices.ContainsFunc(s.Spec.Provider.Workers, func(w Worker) bool { return w.Maximum > w.Minimum })
}

// VerticalPodAutoscalerWanted reports whether the requests of pods in a shoot are scaled by a Vertical Pod Autoscaler of Gardener.
func (s *Shoot) VerticalPodAutoscalerWanted() bool {
	return !s.Workerless() && s.Spec.Kubernetes.VerticalPodAutoscaler != nil && s.Spec.Kubernetes.VerticalPodAutoscaler.Enabled
}

// SelfHosted reports whether the control plane of a shoot runs on machines of one of its own worker pools, instead of on a seed.
func (s *Shoot) SelfHosted() bool { return s.Spec.SelfHosted() }

// SelfHosted reports whether one of the worker pools is for the control plane.
func (s *ShootSpec) SelfHosted() bool {
	return slices.ContainsFunc(s.Provider.Workers, func(w Worker) bool { return w.ControlPlane != nil })
}

// MovesToOtherSeed reports whether the control plane of a shoot is between the beginning of its migration and the end of its
// restoration on another seed.
func (s *Shoot) MovesToOtherSeed() bool {
	last := s.Status.LastOperation
	if last == nil {
		return false
	}
	return last.Type == LastOperationTypeMigrate || last.Type == LastOperationTypeRestore && last.State != LastOperationStateSucceeded
}
