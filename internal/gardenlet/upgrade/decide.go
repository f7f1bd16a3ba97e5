package upgrade

import (
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
)

// action is what is to be done for a Gardenlet.
type action string

const (
	// keep is when the gardenlet is as its Gardenlet says.
	keep action = "keep"
	// refuse is when no operator has approved what would be deployed.
	refuse action = "refuse"
	// prepare is to record what there is now, and deploy the guard.
	prepare action = "prepare"
	// replace is to go on with another release than the one that is tried, and keep what there was before both.
	replace action = "replace"
	// await is while the guard starts, or rolls back.
	await action = "await"
	// begin is to apply the new objects for the first time.
	begin action = "begin"
	// apply is to apply them again while they are tried: a pass may have ended half way.
	apply action = "apply"
	// restore is to apply the former objects again, as what is requested was rolled back.
	restore action = "restore"
)

// observed is what is known before an upgrade.
type observed struct {
	// ID identifies what the Gardenlet requests.
	ID string
	// Trial is the last upgrade.
	Trial *trial.Trial
	// Differs says whether applying it would change something.
	Differs bool
	// GuardReady says whether the guard runs.
	GuardReady bool
	// Unapproved says that the gardenlet has created the Gardenlet itself.
	Unapproved bool
	// Retry says that a release that was rolled back is to be tried again.
	Retry bool
}

// decide returns what is to be done.
func decide(o observed) action {
	same, t := o.Trial.ID == o.ID, o.Trial
	switch {
	case t.State == trial.RollingBack:
		return await
	case t.State == trial.RolledBack && same && !o.Retry:
		return restore
	case t.State == trial.Trying && same:
		return apply
	case !o.Differs:
		return keep
	case o.Unapproved:
		return refuse
	case t.State == trial.Preparing && same && o.GuardReady:
		return begin
	case t.State == trial.Preparing && same:
		return await
	case t.State == trial.Preparing || t.State == trial.Trying:
		return replace
	}
	return prepare
}

// byOperator says whether gardener-operator deploys a Gardenlet now.
func byOperator(object *seedmanagementv1alpha1.Gardenlet) bool {
	return object.Spec.KubeconfigSecretRef != nil || operates(object, operationForceRedeploy)
}
