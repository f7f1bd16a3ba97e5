package kube

import "gardener.cloud/gardener/pkg/kube"

// What authors of extensions need as well is in pkg/kube. Processes find it here, beside what only they need.
var (
	Apply              = kube.Apply
	Condition          = kube.Condition
	ConditionsTrue     = kube.ConditionsTrue
	DeploymentComplete = kube.DeploymentComplete
	HasHealth          = kube.HasHealth
	Healthy            = kube.Healthy
	RolledOut          = kube.RolledOut
	SetCondition       = kube.SetCondition
	Shorten            = kube.Shorten
	Soften             = kube.Soften
)

// MaxMessage is the length of messages in the status of an object, in bytes.
const MaxMessage = kube.MaxMessage
