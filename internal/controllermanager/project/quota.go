package project

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// quotaName is the name of the ResourceQuota of a Project.
const quotaName = "gardener"

// quota is a ResourceQuota for the Projects that are selected.
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

// ensureQuota gives the namespace of a Project the first quota that is meant for it, if there is one.
func (r *reconciler) ensureQuota(ctx context.Context, project *corev1beta1.Project) error {
	for _, quota := range r.quotas {
		if !quota.selector.Matches(labels.Set(project.Labels)) {
			continue
		}
		obj := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: *project.Spec.Namespace, Name: quotaName}}
		return ensure(ctx, r.client, project, obj, func(have *corev1.ResourceQuota) { applyQuota(have, quota.config) })
	}
	return nil
}

// applyQuota makes a ResourceQuota one for what the configuration limits. A limit that is there already stays: an operator may have
// raised it for this Project.
func applyQuota(have *corev1.ResourceQuota, config corev1.ResourceQuota) {
	have.Labels, have.Annotations = withAll(have.Labels, config.Labels), withAll(have.Annotations, config.Annotations)
	hard := corev1.ResourceList{}
	for resource, limit := range config.Spec.Hard {
		hard[resource] = limit
		if existing, ok := have.Spec.Hard[resource]; ok {
			hard[resource] = existing
		}
	}
	if have.ResourceVersion == "" { // what else it has can only be said at first
		have.Spec = *config.Spec.DeepCopy()
	}
	have.Spec.Hard = hard
}
