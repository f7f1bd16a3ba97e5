package kube

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gardener.cloud/gardener/pkg/kube"
)

// What authors of extensions need as well is in pkg/kube. Processes find it here, beside what only they need.
var (
	Apply               = kube.Apply
	Condition           = kube.Condition
	ConditionsTrue      = kube.ConditionsTrue
	DeploymentAvailable = kube.DeploymentAvailable
	DeploymentComplete  = kube.DeploymentComplete
	HasHealth           = kube.HasHealth
	Healthy             = kube.Healthy
	Manifest            = kube.Manifest
	RolledOut           = kube.RolledOut
	SetCondition        = kube.SetCondition
	Shorten             = kube.Shorten
	Soften              = kube.Soften
)

// StatusChanged is a predicate for what controllers write to a status.
func StatusChanged[T client.Object](written func(T) any) predicate.Predicate {
	return kube.StatusChanged(written)
}

// MaxMessage is the length of messages in the status of an object, in bytes.
const MaxMessage = kube.MaxMessage

// MaxNote is the length of an event's note that the API server accepts, in bytes.
const MaxNote = 1024
