package kube

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// errNotObserved says that a status is about an older spec.
var errNotObserved = errors.New("its last change has not been observed by its controller")

// newReplicaSetAvailable is the reason of a Deployment's condition Progressing after a complete rollout, whatever becomes of its pods later.
const newReplicaSetAvailable = "NewReplicaSetAvailable"

// DeploymentComplete returns why a Deployment is not complete, or nil if it is: as Kubernetes defines it, all replicas are updated and
// available, and there are no old ones. The error names the Deployment. It is stricter than Healthy, which accepts a Deployment with minimum
// availability, and than RolledOut, which accepts pods that fail after a rollout.
func DeploymentComplete(d *appsv1.Deployment) error {
	err := deploymentUpdated(d)
	if err == nil {
		err = updatedPodsAvailable(d)
	}
	if surplus := d.Status.Replicas - replicas(d.Spec.Replicas); err == nil && surplus > 0 {
		err = fmt.Errorf("%d pods too many are not gone", surplus)
	}
	if err != nil {
		return fmt.Errorf("Deployment %q: %w", d.Name, err)
	}
	return nil
}

// DeploymentAvailable returns why a Deployment lacks minimum availability or makes no progress, or nil, also during a rollout. The error names the
// Deployment. Unlike Healthy, it accepts that the last change has not been observed, which is so for a moment after each one: its pods are available until
// the status reports otherwise.
func DeploymentAvailable(d *appsv1.Deployment) error {
	if err := minimumAvailability(d); err != nil {
		return fmt.Errorf("Deployment %q: %w", d.Name, err)
	}
	return nil
}

func deploymentAvailable(d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration < d.Generation {
		return errNotObserved
	}
	return minimumAvailability(d)
}

// minimumAvailability returns why a Deployment lacks minimum availability or makes no progress, or nil.
func minimumAvailability(d *appsv1.Deployment) error {
	available := false
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue:
			available = true
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse,
			c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
	}
	if !available {
		return fmt.Errorf("it lacks minimum availability: %d of %d pods are available", d.Status.AvailableReplicas, replicas(d.Spec.Replicas))
	}
	return nil
}

// deploymentRolledOut returns why the last rollout of a Deployment is not complete, or nil. Pods that became unavailable after it do not count.
func deploymentRolledOut(d *appsv1.Deployment) error {
	if err := deploymentUpdated(d); err != nil {
		return err
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == newReplicaSetAvailable {
			return nil
		}
	}
	return updatedPodsAvailable(d)
}

// deploymentUpdated returns why not all pods of a Deployment, or not only those, have its last pod template, or nil.
func deploymentUpdated(d *appsv1.Deployment) error {
	want := replicas(d.Spec.Replicas)
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return errNotObserved
	case s.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d pods are updated", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Errorf("%d old pods are not gone", s.Replicas-s.UpdatedReplicas)
	}
	return nil
}

func updatedPodsAvailable(d *appsv1.Deployment) error {
	if want := replicas(d.Spec.Replicas); d.Status.AvailableReplicas < want {
		return fmt.Errorf("%d of %d updated pods are available", d.Status.AvailableReplicas, want)
	}
	return nil
}

func statefulSetRolledOut(s *appsv1.StatefulSet) error {
	want := replicas(s.Spec.Replicas)
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		want = max(want-*rolling.Partition, 0)
	}
	switch {
	case s.Status.ObservedGeneration < s.Generation:
		return errNotObserved
	case s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && s.Status.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d pods are updated", s.Status.UpdatedReplicas, want)
	}
	return nil
}

// daemonSetAvailable returns why fewer pods of a DaemonSet are available than a rolling update leaves as they are, or nil. Nodes come and go, so a
// DaemonSet on many nodes is rarely complete.
func daemonSetAvailable(d *appsv1.DaemonSet) error {
	s := d.Status
	if s.ObservedGeneration < d.Generation {
		return errNotObserved
	}
	unavailable := 0
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		// One of them is zero. Pods of nodes that come and go may be missing in both cases.
		for name, limit := range map[string]*intstr.IntOrString{"maxUnavailable": rolling.MaxUnavailable, "maxSurge": rolling.MaxSurge} {
			if limit == nil {
				continue
			}
			scaled, err := intstr.GetScaledValueFromIntOrPercent(limit, int(s.DesiredNumberScheduled), true)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			unavailable = max(unavailable, scaled)
		}
	}
	if enough := max(s.DesiredNumberScheduled-int32(unavailable), 0); s.NumberAvailable < enough { // not more than there are nodes
		return fmt.Errorf("%d of %d pods are available, %d are enough", s.NumberAvailable, s.DesiredNumberScheduled, enough)
	}
	return nil
}

func daemonSetRolledOut(d *appsv1.DaemonSet) error {
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return errNotObserved
	case d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType && s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
		return fmt.Errorf("%d of %d pods are updated", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)
	}
	return nil
}

// enoughReady is the check of kinds that only have replicas.
func enoughReady(generation, observed int64, desired *int32, ready int32) error {
	switch want := replicas(desired); {
	case observed < generation:
		return errNotObserved
	case ready < want:
		return fmt.Errorf("%d of %d pods are ready", ready, want)
	}
	return nil
}

func jobHealthy(j *batchv1.Job) error {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return fmt.Errorf("it failed: %s: %s", c.Reason, c.Message)
		}
	}
	return nil
}

// replicas is what spec.replicas means.
func replicas(desired *int32) int32 { return ptr.Deref(desired, 1) }
