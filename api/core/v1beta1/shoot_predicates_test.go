package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShootPredicates(t *testing.T) {
	type answers struct{ Workerless, HibernationWanted, SelfHosted, MovesToOtherSeed, ClusterAutoscalerWanted, VerticalPodAutoscalerWanted bool }
	workers := func(pools ...Worker) ShootSpec { return ShootSpec{Provider: Provider{Workers: pools}} }
	hibernation := func(h *Hibernation) ShootSpec {
		spec := workers(Worker{})
		spec.Hibernation = h
		return spec
	}
	autoscaled := func(spec ShootSpec, enabled bool) Shoot {
		spec.Kubernetes.VerticalPodAutoscaler = &VerticalPodAutoscaler{Enabled: enabled}
		return Shoot{Spec: spec}
	}
	last := func(operation LastOperationType, state LastOperationState) Shoot {
		return Shoot{Spec: workers(Worker{}), Status: ShootStatus{LastOperation: &LastOperation{Type: operation, State: state}}}
	}
	for name, tc := range map[string]struct {
		shoot Shoot
		want  answers
	}{
		"no worker pools":             {Shoot{}, answers{Workerless: true}},
		"a worker pool":               {Shoot{Spec: workers(Worker{})}, answers{}},
		"a pool of the control plane": {Shoot{Spec: workers(Worker{}, Worker{ControlPlane: &WorkerControlPlane{}})}, answers{SelfHosted: true}},
		"a pool of a fixed size":      {Shoot{Spec: workers(Worker{Minimum: 2, Maximum: 2})}, answers{}},
		"an elastic pool":             {Shoot{Spec: workers(Worker{Minimum: 2, Maximum: 2}, Worker{Maximum: 1})}, answers{ClusterAutoscalerWanted: true}},
		"a Vertical Pod Autoscaler":   {autoscaled(workers(Worker{}), true), answers{VerticalPodAutoscalerWanted: true}},
		"one that is disabled":        {autoscaled(workers(Worker{}), false), answers{}},
		"one that has no pods":        {autoscaled(ShootSpec{}, true), answers{Workerless: true}},
		"hibernation schedules only":  {Shoot{Spec: hibernation(&Hibernation{})}, answers{}},
		"hibernation disabled":        {Shoot{Spec: hibernation(&Hibernation{Enabled: new(false)})}, answers{}},
		"hibernation enabled":         {Shoot{Spec: hibernation(&Hibernation{Enabled: new(true)})}, answers{HibernationWanted: true}},
		"still hibernated":            {Shoot{Spec: workers(Worker{}), Status: ShootStatus{Hibernated: true}}, answers{}},
		"reconciled":                  {last(LastOperationTypeReconcile, LastOperationStateProcessing), answers{}},
		"migrated":                    {last(LastOperationTypeMigrate, LastOperationStateSucceeded), answers{MovesToOtherSeed: true}},
		"restoration failed":          {last(LastOperationTypeRestore, LastOperationStateFailed), answers{MovesToOtherSeed: true}},
		"restored":                    {last(LastOperationTypeRestore, LastOperationStateSucceeded), answers{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tc.shoot
			got := answers{s.Workerless(), s.HibernationWanted(), s.SelfHosted(), s.MovesToOtherSeed(), s.ClusterAutoscalerWanted(), s.VerticalPodAutoscalerWanted()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}
