package care

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/kube"
)

// etcdRolloutTimeout is how long the rollout of an etcd may take. Each of three members may take some minutes, with its image and with what it has
// to catch up.
const etcdRolloutTimeout = 15 * time.Minute

// requiredDeployments are the Deployments that the control plane of a shoot must have. A cluster-autoscaler comes with the reconciliation of the spec that
// has an elastic pool, and is the first one that is deleted; a Vertical Pod Autoscaler comes with that of the spec that enables it. The
// machine-controller-manager is deleted before the others, when the machines are gone.
func requiredDeployments(shoot *corev1beta1.Shoot) []string {
	if hibernated(shoot) {
		return []string{"kube-apiserver"} // one that has moved to another seed while it was hibernated gets the others when it wakes up
	}
	names := []string{"gardener-resource-manager", "kube-apiserver", "kube-controller-manager"}
	if len(shoot.Spec.Provider.Workers) > 0 {
		names = append(names, "kube-scheduler")
	}
	if len(shoot.Spec.Provider.Workers) > 0 && shoot.DeletionTimestamp == nil {
		names = append(names, "machine-controller-manager")
	}
	if shoot.ClusterAutoscalerWanted() && shoot.Status.ObservedGeneration == shoot.Generation && shoot.DeletionTimestamp == nil {
		names = append(names, "cluster-autoscaler")
	}
	if shoot.VerticalPodAutoscalerWanted() && shoot.Status.ObservedGeneration == shoot.Generation && shoot.DeletionTimestamp == nil {
		names = append(names, "vpa-admission-controller", "vpa-recommender", "vpa-updater")
	}
	return names
}

// controlPlaneProblems are the reasons why ControlPlaneHealthy is False, besides those of ManagedResources and extensions.
func controlPlaneProblems(shoot *corev1beta1.Shoot, o *observed, now time.Time) []error {
	var errs []error
	for _, name := range requiredDeployments(shoot) {
		if !slices.ContainsFunc(o.deployments, func(d appsv1.Deployment) bool { return d.Name == name }) {
			errs = append(errs, fmt.Errorf("Deployment %q not found", name))
		}
	}
	for i := range o.deployments {
		if d := &o.deployments[i]; !forObservability(d) {
			errs = append(errs, kube.DeploymentAvailable(d))
		}
	}
	for _, name := range []string{"etcd-main", "etcd-events"} {
		index := slices.IndexFunc(o.etcds, func(e druidv1alpha1.Etcd) bool { return e.Name == name })
		if index < 0 {
			errs = append(errs, fmt.Errorf("Etcd %q not found", name))
			continue
		}
		errs = append(errs, etcd.Healthy(&o.etcds[index]))
	}
	for i := range o.etcds {
		errs = append(errs, etcdRolloutProblem(&o.etcds[i], now))
	}
	return errs
}

// etcdRolloutProblem returns that the rollout of an Etcd takes too long, or nil. The Etcd may serve its clients nevertheless.
func etcdRolloutProblem(etcd *druidv1alpha1.Etcd, now time.Time) error {
	for _, c := range etcd.Status.Conditions {
		if c.Type == druidv1alpha1.ConditionTypeAllMembersUpdated && c.Status == druidv1alpha1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) > etcdRolloutTimeout {
			return fmt.Errorf("Etcd %q: it is being rolled out for more than %s: %s", etcd.Name, etcdRolloutTimeout, c.Message)
		}
	}
	return nil
}
