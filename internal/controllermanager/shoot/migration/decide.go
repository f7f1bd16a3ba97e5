package migration

import (
	"errors"
	"fmt"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// Reasons of the constraint, besides the one that gardenlets read.
const (
	reasonUnready = "DestinationSeedUnready"
	reasonReady   = "DestinationSeedReady"
)

// moves reports whether the control plane of a Shoot is on another seed than its spec says.
func moves(shoot *corev1beta1.Shoot) bool {
	to, from := ptr.Deref(shoot.Spec.SeedName, ""), ptr.Deref(shoot.Status.SeedName, "")
	return to != "" && from != "" && to != from
}

func constraintOf(shoot *corev1beta1.Shoot) *corev1beta1.Condition {
	return kube.Condition(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
}

// decide returns the constraint of a Shoot that moves from one Seed to another. A Seed that does not exist is nil.
func decide(source, destination *corev1beta1.Seed) corev1beta1.Condition {
	constraint := corev1beta1.Condition{Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionFalse}
	if destination != nil && destination.DeletionTimestamp != nil {
		constraint.Reason, constraint.Message = corev1beta1.ReasonDestinationSeedInDeletion, "Seed is being deleted"
		return constraint
	}
	if err := ready(source, destination); err != nil {
		constraint.Reason, constraint.Message = reasonUnready, err.Error()
		return constraint
	}
	constraint.Status, constraint.Reason = corev1beta1.ConditionTrue, reasonReady
	constraint.Message = "Destination seed cluster is ready for the shoot migration"
	return constraint
}

// ready returns why a Shoot cannot move from one Seed to another now, or nil. Gardenlets of different versions could write and read its state
// differently.
func ready(source, destination *corev1beta1.Seed) error {
	switch {
	case destination == nil:
		return errors.New("the destination seed does not exist")
	case source == nil:
		return errors.New("the source seed does not exist")
	}
	for _, seed := range []*corev1beta1.Seed{source, destination} {
		if version(seed) == "" {
			return fmt.Errorf("seed %q reports no Gardener version", seed.Name)
		}
	}
	if from, to := version(source), version(destination); from != to {
		return fmt.Errorf("seed %q has Gardener version %s, but seed %q has %s", destination.Name, to, source.Name, from)
	}
	if destination.Status.ObservedGeneration != destination.Generation {
		return fmt.Errorf("the gardenlet of seed %q has not observed its last change yet", destination.Name)
	}
	for _, typ := range required {
		switch condition := kube.Condition(destination.Status.Conditions, typ); {
		case condition == nil:
			return fmt.Errorf("seed %q has no condition %s yet", destination.Name, typ)
		case condition.Status != corev1beta1.ConditionTrue:
			return fmt.Errorf("condition %s of seed %q is %s", typ, destination.Name, condition.Status)
		}
	}
	return nil
}

// required are the conditions that a destination must have.
var required = []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy}

func version(seed *corev1beta1.Seed) string {
	if seed.Status.Gardener == nil {
		return ""
	}
	return seed.Status.Gardener.Version
}

// facts are what decide reads of a Seed.
type facts struct {
	version                     string
	beingDeleted, observed      bool
	gardenletReady, systemReady corev1beta1.ConditionStatus
}

// seen returns what decide reads of a Seed. Other parts of its status, such as heartbeats, change all the time.
func seen(seed *corev1beta1.Seed) facts {
	status := func(typ corev1beta1.ConditionType) corev1beta1.ConditionStatus {
		return ptr.Deref(kube.Condition(seed.Status.Conditions, typ), corev1beta1.Condition{}).Status
	}
	return facts{
		version: version(seed), beingDeleted: seed.DeletionTimestamp != nil, observed: seed.Status.ObservedGeneration == seed.Generation,
		gardenletReady: status(required[0]), systemReady: status(required[1]),
	}
}
