package constants

// Priority classes.
const (
	// PriorityClassNameGardenSystemCritical is for what the garden cannot do without (999999550).
	PriorityClassNameGardenSystemCritical = "gardener-garden-system-critical"
	// PriorityClassNameGardenSystem500 is for components of the garden (999999500).
	PriorityClassNameGardenSystem500 = "gardener-garden-system-500"
	// PriorityClassNameGardenSystem400 is for components of the garden (999999400).
	PriorityClassNameGardenSystem400 = "gardener-garden-system-400"
	// PriorityClassNameGardenSystem300 is for components of the garden (999999300).
	PriorityClassNameGardenSystem300 = "gardener-garden-system-300"
	// PriorityClassNameGardenSystem200 is for components of the garden (999999200).
	PriorityClassNameGardenSystem200 = "gardener-garden-system-200"
	// PriorityClassNameGardenSystem100 is for components of the garden (999999100).
	PriorityClassNameGardenSystem100 = "gardener-garden-system-100"
	// PriorityClassNameShootSystem900 is for system components in shoots (999999900).
	PriorityClassNameShootSystem900 = "gardener-shoot-system-900"
	// PriorityClassNameShootSystem800 is for system components in shoots (999999800).
	PriorityClassNameShootSystem800 = "gardener-shoot-system-800"
	// PriorityClassNameShootSystem700 is for system components in shoots (999999700).
	PriorityClassNameShootSystem700 = "gardener-shoot-system-700"
	// PriorityClassNameShootSystem600 is for system components in shoots (999999600).
	PriorityClassNameShootSystem600 = "gardener-shoot-system-600"
	// PriorityClassNameSeedSystemCritical is for what a seed cannot do without (999998950).
	PriorityClassNameSeedSystemCritical = "gardener-system-critical"
	// PriorityClassNameSeedSystem900 is for components of a seed (999998900).
	PriorityClassNameSeedSystem900 = "gardener-system-900"
	// PriorityClassNameSeedSystem800 is for components of a seed (999998800).
	PriorityClassNameSeedSystem800 = "gardener-system-800"
	// PriorityClassNameSeedSystem700 is for components of a seed (999998700).
	PriorityClassNameSeedSystem700 = "gardener-system-700"
	// PriorityClassNameSeedSystem600 is for components of a seed (999998600).
	PriorityClassNameSeedSystem600 = "gardener-system-600"
	// PriorityClassNameShootControlPlane500 is for control planes of shoots (999998500).
	PriorityClassNameShootControlPlane500 = "gardener-system-500"
	// PriorityClassNameShootControlPlane400 is for control planes of shoots (999998400).
	PriorityClassNameShootControlPlane400 = "gardener-system-400"
	// PriorityClassNameShootControlPlane300 is for control planes of shoots (999998300).
	PriorityClassNameShootControlPlane300 = "gardener-system-300"
	// PriorityClassNameShootControlPlane200 is for control planes of shoots (999998200).
	PriorityClassNameShootControlPlane200 = "gardener-system-200"
	// PriorityClassNameShootControlPlane100 is for control planes of shoots (999998100).
	PriorityClassNameShootControlPlane100 = "gardener-system-100"
	// PriorityClassNameReserveExcessCapacity is for pods that give way to control planes (-5).
	PriorityClassNameReserveExcessCapacity = "gardener-reserve-excess-capacity"
)
