package project

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// quotaName is the name of the ResourceQuota of a Project.
const quotaName = "gardener"

// quota is a ResourceQuota for the Projects that a selector matches.
type quota struct {
	selector labels.Selector
	config   corev1.ResourceQuota
}

func selectableQuotas(configs []controllermanagerconfigv1alpha1.QuotaConfiguration) ([]quota, error) {
	var quotas []quota
	for i, config := range configs {
		selector, err := metav1.LabelSelectorAsSelector(config.ProjectSelector)
		if err != nil {
			return nil, fmt.Errorf("controllers.project.quotas[%d].projectSelector: %w", i, err)
		}
		quotas = append(quotas, quota{selector: selector, config: config.Config})
	}
	return quotas, nil
}

// ensureQuota creates or updates the ResourceQuota in the namespace of a Project from the first quota whose selector matches, if any.
func (r *reconciler) ensureQuota(ctx context.Context, project *corev1beta1.Project) error {
	for _, quota := range r.quotas {
		if !quota.selector.Matches(labels.Set(project.Labels)) {
			continue
		}
		obj := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: *project.Spec.Namespace, Name: quotaName}}
		return ensure(ctx, r.gardenCache, project, obj, func(existing *corev1.ResourceQuota) { applyQuota(existing, quota.config) })
	}
	return nil
}

// applyQuota sets the limits of the configuration in a ResourceQuota. Limits that it has already stay: an operator may have raised them for
// this Project. So do the annotations that say for how many objects per Shoot limits were raised (package resourcequota).
func applyQuota(existing *corev1.ResourceQuota, config corev1.ResourceQuota) {
	raised := map[string]string{}
	for _, annotation := range []string{constants.QuotaConfigMapsPerShoot, constants.QuotaSecretsPerShoot} {
		if value, ok := existing.Annotations[annotation]; ok {
			raised[annotation] = value
		}
	}
	existing.Labels, existing.Annotations = withAll(existing.Labels, config.Labels), withAll(existing.Annotations, config.Annotations)
	existing.Annotations = withAll(existing.Annotations, raised)
	hard := corev1.ResourceList{}
	for resource, limit := range config.Spec.Hard {
		hard[resource] = limit
		if own, ok := existing.Spec.Hard[resource]; ok {
			hard[resource] = own
		}
	}
	if existing.ResourceVersion == "" { // the other fields are immutable
		existing.Spec = *config.Spec.DeepCopy()
	}
	existing.Spec.Hard = hard
}
