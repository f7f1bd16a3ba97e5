package v1alpha1

import corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"

// Conditions of ManagedSeeds and Gardenlets. The gardenlet writes them.
const (
	// ManagedSeedShootReconciled says whether the shoot is reconciled, so that a gardenlet can be deployed into it.
	ManagedSeedShootReconciled corev1beta1.ConditionType = "ShootReconciled"
	// ManagedSeedSeedRegistered says whether the gardenlet is deployed, so that it registers the seed.
	ManagedSeedSeedRegistered corev1beta1.ConditionType = "SeedRegistered"
	// ManagedSeedGardenletHealthy says whether the gardenlet in the shoot works. Progressing while a changed one is tried.
	ManagedSeedGardenletHealthy corev1beta1.ConditionType = "GardenletHealthy"
	// GardenletReconciled says whether the gardenlet brought itself to the state that the Gardenlet requests.
	GardenletReconciled corev1beta1.ConditionType = "GardenletReconciled"
)

// Reasons of the conditions GardenletReconciled and, the first one, GardenletHealthy that do not pass by themselves.
const (
	// GardenletReasonRolledBack says that the gardenlet was deployed and did not work, so that the former one runs again.
	GardenletReasonRolledBack = "RolledBack"
	// GardenletReasonNotApproved says that the gardenlet has created its Gardenlet, and that no operator has approved it.
	GardenletReasonNotApproved = "NotApproved"
)
