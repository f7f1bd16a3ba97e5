package apiserverfiles

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
)

func authorizationChanged(shoot, old *corev1beta1.Shoot) bool {
	return !authorizers(shoot).Equal(authorizers(old))
}

// checkAuthorization checks a file once for all shoots that have kubeconfigs for the same authorizers, as its expressions take a while to compile.
func checkAuthorization(_ context.Context, _ client.Reader, text string, shoots []*corev1beta1.Shoot) (field.ErrorList, error) {
	const separator = "\n"
	same := map[string][]string{}
	for _, shoot := range shoots {
		key := strings.Join(sets.List(authorizers(shoot)), separator)
		same[key] = append(same[key], shoot.Name)
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(same)) {
		slices.Sort(same[key])
		for _, err := range apiserverconfig.Authorization(text, strings.Split(key, separator)) {
			err.Detail += " (Shoots: " + strings.Join(same[key], ", ") + ")"
			errs = append(errs, err)
		}
	}
	return errs, nil
}

// authorizers returns the names of the authorizers for which the Shoot has kubeconfigs.
func authorizers(shoot *corev1beta1.Shoot) sets.Set[string] {
	names := sets.New[string]()
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.StructuredAuthorization != nil {
		for _, kubeconfig := range c.StructuredAuthorization.Kubeconfigs {
			names.Insert(kubeconfig.AuthorizerName)
		}
	}
	return names
}
