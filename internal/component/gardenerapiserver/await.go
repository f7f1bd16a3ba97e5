package gardenerapiserver

import (
	"context"
	"fmt"
	"slices"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

// AwaitServed waits until a kube-apiserver aggregates all versions.
func AwaitServed(ctx context.Context, c client.WithWatch) error {
	return kube.Await(ctx, c, &apiregistrationv1.APIServiceList{}, func(services []*apiregistrationv1.APIService) error {
		for _, version := range Versions() {
			index := slices.IndexFunc(services, func(s *apiregistrationv1.APIService) bool { return s.Name == version.Version+"."+version.Group })
			if index < 0 {
				return fmt.Errorf("APIService of %s not found", version)
			}
			if err := kube.Healthy(services[index]); err != nil {
				return fmt.Errorf("APIService %q: %w", services[index].Name, err)
			}
		}
		return nil
	}, nil)
}
