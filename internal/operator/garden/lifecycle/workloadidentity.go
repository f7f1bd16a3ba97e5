package lifecycle

import (
	"context"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerdiscoveryserver"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// publishedIdentityKey is the annotation of the Service of gardener-apiserver with the key of workload identities, the name of its Secret, that all pods
	// of gardener-discovery-server publish.
	publishedIdentityKey = "operator.gardener.cloud/published-workload-identity-key"
	// identityKeyTask has gardener-apiserver sign with the new key.
	identityKeyTask = "gardener-identity-key"
)

// publishesIdentityKey reports whether this run has gardener-discovery-server publish a new key of workload identities, before tokens are signed by it: until
// then they would be rejected.
func (s *state) publishesIdentityKey() bool {
	return s.source.PreparesWorkloadIdentityKey() && s.garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer != nil
}

// identityKey is the Secret with the key that signs tokens of workload identities now: the old one until the new one is published.
func (s *state) identityKey(ctx context.Context, set credentials.Generated) (string, error) {
	current, old := set.Name(operatorv1alpha1.SecretNameWorkloadIdentityKey), set.Old(operatorv1alpha1.SecretNameWorkloadIdentityKey)
	if old == nil || !s.publishesIdentityKey() {
		return current, nil
	}
	service, err := s.apiServerService(ctx)
	if err != nil || service.Annotations[publishedIdentityKey] == current {
		return current, err
	}
	return old.Name, nil
}

// identityKeyTasks have gardener-apiserver sign with a new key when it is published. Tokens are renewed after it, as those of the old key are rejected when the
// rotation is completed. The tasks before are others that deploy gardener-apiserver.
func (s *state) identityKeyTasks(before []flow.Task) []flow.Task {
	if !s.publishesIdentityKey() {
		return nil
	}
	after := []string{"gardener-apiserver-ready", gardenerdiscoveryserver.Name + "-ready"}
	for _, t := range before {
		after = append(after, t.ID)
	}
	return []flow.Task{flow.Await(stage.PodsTimeout, identityKeyTask, "Deploying gardener-apiserver with the new key of workload identities", func(ctx context.Context) error {
		set, err := s.set.All()
		if err != nil {
			return err
		}
		return s.redeployAPIServer(ctx, publishedIdentityKey, set.Name(operatorv1alpha1.SecretNameWorkloadIdentityKey))
	}, after...)}
}
