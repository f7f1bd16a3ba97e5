// Package priorityclass holds the priority classes of the components of Gardener.
package priorityclass

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Garden returns the classes for the components of a garden.
func Garden() []client.Object {
	return []client.Object{
		class(constants.PriorityClassNameGardenSystemCritical, 999999550, "what the garden cannot do without"),
		class(constants.PriorityClassNameGardenSystem500, 999999500, "components of the garden"),
		class(constants.PriorityClassNameGardenSystem400, 999999400, "components of the garden"),
		class(constants.PriorityClassNameGardenSystem300, 999999300, "components of the garden"),
		class(constants.PriorityClassNameGardenSystem200, 999999200, "components of the garden"),
		class(constants.PriorityClassNameGardenSystem100, 999999100, "components of the garden"),
	}
}

// SeedCritical returns the class that a gardenlet has, which is there before the gardenlet creates all others.
func SeedCritical() client.Object {
	return class(constants.PriorityClassNameSeedSystemCritical, 999998950, "what the seed cannot do without")
}

// Seed returns the classes for the components of a seed and of the control planes on it.
func Seed() []client.Object {
	return []client.Object{
		SeedCritical(),
		class(constants.PriorityClassNameSeedSystem900, 999998900, "components of the seed"),
		class(constants.PriorityClassNameSeedSystem800, 999998800, "components of the seed"),
		class(constants.PriorityClassNameSeedSystem700, 999998700, "components of the seed"),
		class(constants.PriorityClassNameSeedSystem600, 999998600, "components of the seed"),
		class(constants.PriorityClassNameShootControlPlane500, 999998500, "control planes of shoots"),
		class(constants.PriorityClassNameShootControlPlane400, 999998400, "control planes of shoots"),
		class(constants.PriorityClassNameShootControlPlane300, 999998300, "control planes of shoots"),
		class(constants.PriorityClassNameShootControlPlane200, 999998200, "control planes of shoots"),
		class(constants.PriorityClassNameShootControlPlane100, 999998100, "control planes of shoots"),
		class(constants.PriorityClassNameReserveExcessCapacity, -5, "pods that give way to control planes"),
	}
}

// Shoot returns the classes for the system components in a shoot.
func Shoot() []client.Object {
	return []client.Object{
		class(constants.PriorityClassNameShootSystem900, 999999900, "system components of the cluster"),
		class(constants.PriorityClassNameShootSystem800, 999999800, "system components of the cluster"),
		class(constants.PriorityClassNameShootSystem700, 999999700, "system components of the cluster"),
		class(constants.PriorityClassNameShootSystem600, 999999600, "system components of the cluster"),
	}
}

func class(name string, value int32, what string) client.Object {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, Description: "For " + what + "."}
}
