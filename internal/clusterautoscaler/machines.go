package clusterautoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// triggered returns the names in the annotation of a deployment that lists machines to delete, with their times.
func triggered(deployment *machinev1alpha1.MachineDeployment) map[string]string {
	out := map[string]string{}
	for entry := range strings.SplitSeq(deployment.Annotations[machinev1alpha1.TriggerDeletionByMCM], ",") {
		if name, at, found := strings.Cut(entry, "~"); found {
			out[name] = at
		}
	}
	return out
}

// chosen reports whether the autoscaler has chosen a machine for deletion: it is among those that are triggered or, after that, it is marked so that the
// machine-controller-manager deletes it. A machine of which only the priority says so stays, unless replicas are reduced.
func chosen(deployment *machinev1alpha1.MachineDeployment, listed map[string]string, machine *machinev1alpha1.Machine) bool {
	if _, found := listed[machine.Name]; found {
		return true
	}
	marked, err := time.Parse(time.RFC3339, machine.Annotations[machinev1alpha1.MarkedForDeletionTime])
	if err != nil || machine.Annotations[machinev1alpha1.MachinePriority] != "1" {
		return false
	}
	scaled, err := time.Parse(time.RFC3339, deployment.Annotations[machinev1alpha1.LastDeploymentReplicaChangeByScalerTime])
	return err == nil && !marked.After(scaled)
}

// increase adds machines to a deployment, up to its maximum. It returns how many it has before and after.
func (s *Scaler) increase(ctx context.Context, g *groupState, by int) (from, to int, err error) {
	err = s.change(ctx, g, func(d *machinev1alpha1.MachineDeployment) bool {
		from = int(d.Spec.Replicas)
		to = max(from, min(from+by, g.Max))
		d.Spec.Replicas = int32(to) //nolint:gosec // no pool has so many
		return to > from
	})
	return from, to, err
}

// remove removes machines from a deployment in one write: the machine-controller-manager deletes those that the annotation lists. Machines that
// would be missing from the minimum are not removed. It returns the names of the others.
func (s *Scaler) remove(ctx context.Context, g *groupState, machines []string) ([]string, error) {
	var removed []string
	err := s.change(ctx, g, func(d *machinev1alpha1.MachineDeployment) bool {
		removed = nil
		listed := triggered(d)
		for _, name := range machines {
			if _, ok := listed[name]; !ok && int(d.Spec.Replicas)-len(removed) > g.Min {
				removed = append(removed, name)
			}
		}
		if len(removed) == 0 {
			return false
		}
		at := s.clock.Now().UTC().Format(time.RFC3339)
		var entries []string
		if before := d.Annotations[machinev1alpha1.TriggerDeletionByMCM]; before != "" {
			entries = strings.Split(before, ",")
		}
		for _, name := range removed {
			entries = append(entries, name+"~"+at)
		}
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machinev1alpha1.TriggerDeletionByMCM, strings.Join(entries, ","))
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machinev1alpha1.LastDeploymentReplicaChangeByScalerTime, at)
		d.Spec.Replicas -= int32(len(removed)) //nolint:gosec // no pool has so many
		return true
	})
	return removed, err
}

// shrink requests no more machines than there are.
func (s *Scaler) shrink(ctx context.Context, g *groupState, to int) error {
	return s.change(ctx, g, func(d *machinev1alpha1.MachineDeployment) bool {
		if int(d.Spec.Replicas) <= to || to < g.Min {
			return false
		}
		d.Spec.Replicas = int32(to) //nolint:gosec // no pool has so many
		return true
	})
}

// change changes a deployment as it is now, not as the cache has it.
func (s *Scaler) change(ctx context.Context, g *groupState, change func(*machinev1alpha1.MachineDeployment) bool) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := &machinev1alpha1.MachineDeployment{}
		if err := s.controlAPI.Get(ctx, client.ObjectKeyFromObject(g.deployment), d); err != nil {
			return err
		}
		before := d.DeepCopy()
		if !change(d) {
			return nil
		}
		desired := d.DeepCopy()
		err := s.controlAPI.Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) {
			// Only the response may have got lost: then nodes come for pods that would have no event, or go although they get pods again.
			if s.controlAPI.Get(ctx, client.ObjectKeyFromObject(desired), d) == nil && d.UID == desired.UID && d.Spec.Replicas == desired.Spec.Replicas &&
				d.Annotations[machinev1alpha1.TriggerDeletionByMCM] == desired.Annotations[machinev1alpha1.TriggerDeletionByMCM] {
				logf.FromContext(ctx).Info("A MachineDeployment was changed, although the API server did not say so", "group", g.Name, "error", err.Error())
				err = nil
			}
		}
		if err != nil {
			return err
		}
		s.wrote[d.UID] = d.Generation
		return nil
	})
	if err != nil {
		return fmt.Errorf("change MachineDeployment %q: %w", g.Name, err)
	}
	return nil
}

// behindLimit is how long a cache may lack a change. Usually it has it within a second.
const behindLimit = time.Minute

// current reports whether the cache has all changes of this process, so that nothing is decided twice. A deployment that was created again begins with
// its first generation. If the store was restored to an earlier time, the API server does not have the changes either, and they do not count any more.
func (s *Scaler) current(ctx context.Context, st *state) (bool, error) {
	lacks := func(g *groupState) bool { return g.deployment.Generation < s.wrote[g.deployment.UID] }
	if !slices.ContainsFunc(st.groups, lacks) {
		s.behind = time.Time{}
		return true, nil
	}
	if s.behind.IsZero() {
		s.behind = st.now
	}
	if st.now.Sub(s.behind) < behindLimit {
		return false, nil
	}
	for _, g := range st.groups {
		if !lacks(g) {
			continue
		}
		d := &machinev1alpha1.MachineDeployment{}
		if err := s.controlAPI.Get(ctx, client.ObjectKeyFromObject(g.deployment), d); err != nil {
			return false, fmt.Errorf("read MachineDeployment %q: %w", g.Name, err)
		}
		if d.UID != g.deployment.UID || d.Generation >= s.wrote[d.UID] {
			return false, fmt.Errorf("the cache lacks a change of MachineDeployment %q for %s", g.Name, st.now.Sub(s.behind).Round(time.Second))
		}
		logf.FromContext(ctx).Info("Ignoring changes of a MachineDeployment that its API server does not have any more", "group", g.Name, "generation", d.Generation)
		delete(s.wrote, d.UID)
	}
	s.behind = time.Time{}
	return true, nil
}
