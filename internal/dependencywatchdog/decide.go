package dependencywatchdog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	component "gardener.cloud/gardener/internal/component/dependencywatchdog"
)

// direction is where the controllers of a shoot are scaled to.
type direction string

const (
	stay direction = "stay"
	up   direction = "up"
	down direction = "down"
)

// expiredAfter is the part of the grace period after which a Lease counts as expired: before the kube-controller-manager acts.
const expiredAfter = 0.75

// defaultConditions are conditions of Nodes that say that something else is wrong. The machine-controller-manager has the same.
const defaultConditions = "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable"

// judge compares the Leases of the nodes of a shoot with their grace period. A single Lease that has expired is no evidence: its node may be
// broken. A single one that is renewed is: nodes reach the API server.
func judge(nodes []corev1.Node, leases []coordinationv1.Lease, machines []machinev1alpha1.Machine, grace time.Duration, fraction float64, now time.Time) direction {
	renewed := map[string]time.Time{}
	for _, lease := range leases {
		if lease.Spec.RenewTime != nil {
			renewed[lease.Name] = lease.Spec.RenewTime.Time
		}
	}
	total, expired := 0, 0
	for i := range nodes {
		last, ok := renewed[nodes[i].Name]
		if !ok || !counts(&nodes[i], machines) {
			continue
		}
		total++
		if now.Sub(last) > time.Duration(expiredAfter*float64(grace)) {
			expired++
		}
	}
	switch {
	case total == 0:
		return up
	case total == 1 && expired == 1:
		return stay
	case float64(expired) >= fraction*float64(total):
		return down
	}
	return up
}

// counts reports whether a node says something about the connection of all nodes: it has a machine that neither ends nor is updated, and no other problem.
func counts(node *corev1.Node, machines []machinev1alpha1.Machine) bool {
	index := slices.IndexFunc(machines, func(m machinev1alpha1.Machine) bool { return m.Labels[machinev1alpha1.NodeLabelKey] == node.Name })
	if _, unmanaged := node.Annotations[machinev1alpha1.NotManagedByMCM]; unmanaged || index < 0 || node.DeletionTimestamp != nil {
		return false
	}
	machine := &machines[index]
	phase := machine.Status.CurrentStatus.Phase
	if machine.DeletionTimestamp != nil || phase == machinev1alpha1.MachineFailed || phase == machinev1alpha1.MachineTerminating ||
		phase == machinev1alpha1.MachineInPlaceUpdating || node.Labels[machinev1alpha1.NodeSelectedForUpdate] == "true" {
		return false
	}
	bad := strings.Split(cmp.Or(ptr.Deref(machine.Spec.NodeConditions, ""), defaultConditions), ",")
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Status == corev1.ConditionTrue && slices.Contains(bad, string(c.Type))
	})
}

// dependent is a Deployment that is scaled, as it is.
type dependent struct {
	component.DependentResource
	deployment *appsv1.Deployment
}

// protected reports whether a Deployment was scaled down by the prober.
func protected(deployment *appsv1.Deployment) bool {
	_, ok := deployment.Annotations[constants.DependencyWatchdogMeltdownProtectionActive]
	return ok
}

// scale returns the Deployments to scale now, in order, and when others follow, or zero. To scale down, one after the other is enough. To scale up, a group
// comes when those before it are available, and have been so for its delay. Deployments that the prober has not scaled down are not scaled up.
func scale(dependents []dependent, to direction, now time.Time) (act []*appsv1.Deployment, after time.Duration) {
	level := func(d dependent) component.Scaling {
		if to == up {
			return *d.ScaleUp
		}
		return *d.ScaleDown
	}
	dependents = slices.DeleteFunc(slices.Clone(dependents), func(d dependent) bool { return component.Ignored(d.deployment) })
	slices.SortStableFunc(dependents, func(a, b dependent) int { return cmp.Compare(level(a).Level, level(b).Level) })
	for _, d := range dependents {
		switch to {
		case stay:
		case down:
			if !protected(d.deployment) && ptr.Deref(d.deployment.Spec.Replicas, 1) > 0 {
				act = append(act, d.deployment)
			}
		case up:
			if !protected(d.deployment) {
				continue
			}
			wait, ok := waits(dependents, level(d), func(o dependent) int { return o.ScaleUp.Level }, now)
			if !ok {
				return act, after // its change of status requires another pass, which comes with the interval
			}
			if wait > 0 {
				return act, wait
			}
			act = append(act, d.deployment)
		}
	}
	return act, after
}

// waits returns how long a group has to wait for those before it. It is not ok if one of them is not available.
func waits(dependents []dependent, s component.Scaling, level func(dependent) int, now time.Time) (wait time.Duration, ok bool) {
	for _, other := range dependents {
		if level(other) >= s.Level {
			continue
		}
		conditions := other.deployment.Status.Conditions
		index := slices.IndexFunc(conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
		})
		if index < 0 || protected(other.deployment) || other.deployment.Status.AvailableReplicas == 0 && ptr.Deref(other.deployment.Spec.Replicas, 1) > 0 {
			return 0, false
		}
		wait = max(wait, s.InitialDelay.Duration-now.Sub(conditions[index].LastTransitionTime.Time))
	}
	return wait, true
}
