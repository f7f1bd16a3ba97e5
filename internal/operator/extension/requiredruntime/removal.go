package requiredruntime

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/extension"
)

// RequiredOf returns which kinds and types the garden requires of an Extension that a new version of it does not have any more, as texts for users. Those
// that another Extension has are not required of it.
func RequiredOf(ctx context.Context, runtimeAPI client.Reader, before, after *operatorv1alpha1.Extension) ([]string, error) {
	if !slices.ContainsFunc(before.Spec.Resources, func(r corev1beta1.ControllerResource) bool { return !responsible(after, need{r.Kind, r.Type}) }) {
		return nil, nil
	}
	garden, err := extension.Garden(ctx, runtimeAPI)
	if err != nil {
		return nil, err
	}
	all := &operatorv1alpha1.ExtensionList{}
	if err := runtimeAPI.List(ctx, all); err != nil {
		return nil, fmt.Errorf("list Extensions: %w", err)
	}
	existing, err := objects(ctx, runtimeAPI)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, n := range slices.Concat(ofSpec(garden, all.Items), existing) {
		byAnother := slices.ContainsFunc(all.Items, func(e operatorv1alpha1.Extension) bool { return e.Name != before.Name && responsible(&e, n) })
		if responsible(before, n) && !responsible(after, n) && !byAnother {
			texts = append(texts, n.String())
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}
