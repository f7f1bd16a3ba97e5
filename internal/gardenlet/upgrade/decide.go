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
	// repair is to apply what works already again, without a trial: others have changed it.
	repair action = "repair"
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
	// Differs is an object that applying it would change. Empty if there is none.
	Differs string
	// Guard is the process that decides.
	Guard guardState
	// Unapproved says that the gardenlet has created the Gardenlet itself.
	Unapproved bool
	// Retry says that a release that was rolled back is to be tried again.
	Retry bool
}

// guardState is what is known about the guard.
type guardState struct {
	// Exists says that it is deployed, and does not end.
	Exists bool
	// Unready is why it does not run. Nil if it does.
	Unready error
}

// goOn returns what is to be done for an upgrade that has begun, or "". What the objects differ in does not matter then.
func goOn(o observed) action {
	same, t := o.Trial.ID == o.ID, o.Trial
	switch {
	case t.State == trial.RollingBack:
		return await
	case t.State == trial.RolledBack && same && !o.Retry:
		return restore
	case t.State == trial.Trying && same:
		return apply
	}
	return ""
}

// decide returns what is to be done.
func decide(o observed) action {
	same, t := o.Trial.ID == o.ID, o.Trial
	if what := goOn(o); what != "" {
		return what
	}
	switch {
	case o.Differs == "":
		return keep
	case o.Unapproved:
		return refuse
	case t.State == trial.Preparing && same && o.Guard.Unready == nil:
		return begin
	case t.State == trial.Preparing && same:
		return await
	case t.State == trial.Preparing || t.State == trial.Trying:
		return replace
	case t.State == trial.Succeeded && same:
		return repair
	}
	return prepare
}

// byOperator says whether gardener-operator deploys a Gardenlet now.
func byOperator(object *seedmanagementv1alpha1.Gardenlet) bool {
	return object.Spec.KubeconfigSecretRef != nil || operates(object, operationForceRedeploy)
}
