package system

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/resourcemanager"
)

func (s *run) deployResourceManager(ctx context.Context) error {
	_, others, err := s.resourceManagerObjects()
	if err != nil {
		return err
	}
	return s.deploy(ctx, others...)
}

func (s *run) awaitResourceManager(ctx context.Context) error {
	return s.awaitDeployment(ctx, resourcemanager.Name)
}

func (s *run) deployResourceManagerWebhooks(ctx context.Context) error {
	webhooks, _, err := s.resourceManagerObjects()
	if err != nil {
		return err
	}
	return s.apply(ctx, webhooks...)
}

// deleteResourceManager deletes the webhooks first, as they fail without the pods.
func (s *run) deleteResourceManager(ctx context.Context) error {
	webhooks, others, err := s.forDeletion().resourceManagerObjects()
	if err != nil {
		return err
	}
	return s.destroy(ctx, append(others, webhooks...)...)
}

// resourceManagerObjects returns the webhook configurations of gardener-resource-manager, and all its other objects.
func (s *run) resourceManagerObjects() (webhooks, others []client.Object, err error) {
	config := resourcemanager.ForSeed()
	if t := s.NodeToleration; t != nil {
		config.Webhooks.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = t.DefaultNotReadyTolerationSeconds
		config.Webhooks.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = t.DefaultUnreachableTolerationSeconds
	}
	objects, err := resourcemanager.Objects(resourcemanager.Values{
		Namespace: constants.GardenNamespace, Image: s.Images.Gardener, Replicas: s.replicas, Config: config,
		ServerSecret: s.certificates.resourceManager, CABundle: s.certificates.caBundle,
	})
	for _, object := range objects {
		switch object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			webhooks = append(webhooks, object)
		default:
			others = append(others, object)
		}
	}
	return webhooks, others, err
}
