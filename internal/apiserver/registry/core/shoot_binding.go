package core

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

// shootBinding is how schedulers and operators bind a shoot to a seed: an update of the shoot that changes spec.seedName, with a
// permission of its own. Admission decides what such an update may change. A new seed is a new generation even if other changes wait
// for the maintenance time window, and an operation in the annotations is none.
func shootBinding(settings Settings) *kind.Kind[corev1beta1.Shoot] {
	binding := shoot(settings)
	binding.RolledOut, binding.Operation = nil, nil
	return binding
}
