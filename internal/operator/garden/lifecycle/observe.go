package lifecycle

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// observe reads what a pass needs to know of a Garden.
func (r *reconciler) observe(ctx context.Context, garden *operatorv1alpha1.Garden) (*state, error) {
	set := credentials.New(r.credentialValues(garden))
	s := &state{reconciler: r, garden: garden, set: set}
	s.source = values.Source{Garden: garden, Credentials: set, Images: r.Images, GardenerVersion: r.Gardener.Version, ETCD: r.Config.Controllers.Garden.ETCDConfig}
	if values.TopologyAware(garden) || values.Autoscaled(garden) {
		version, err := r.RuntimeVersion.ServerVersion()
		if err != nil {
			return nil, fmt.Errorf("read version of the runtime cluster: %w", err)
		}
		s.source.RuntimeVersion = version.GitVersion
	}
	if t := r.Config.NodeToleration; t != nil {
		s.source.NotReadySeconds, s.source.UnreachableSeconds = t.DefaultNotReadyTolerationSeconds, t.DefaultUnreachableTolerationSeconds
	}
	s.run = &stage.Run{
		SeedAPI: r.RuntimeAPI, Of: instance.VirtualGarden, Namespace: constants.GardenNamespace, Name: garden.Name, FieldManager: fieldManager,
		Autoscalers: func(objects []client.Object) []client.Object { return s.source.Autoscalers(objects) },
		Target: stage.NewTarget(func(ctx context.Context) ([]byte, error) {
			return s.source.Access(ctx, r.RuntimeAPI, r.Clock.Now())
		}, r.Connect, r.Discover),
		Clock: r.Clock,
	}
	var err error
	if s.records, err = records(garden); err != nil {
		return nil, err
	}
	return s, s.observeExtensions(ctx)
}
