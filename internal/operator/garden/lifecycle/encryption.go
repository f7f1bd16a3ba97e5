package lifecycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// knownEncryption is the annotation of the Service of gardener-apiserver that says what all its pods can read: the mark of an encryption. The Deployment
// belongs to the resource manager.
const knownEncryption = "credentials.gardener.cloud/known-encryption-key"

// gardenEncryption is how gardener-apiserver encrypts data at rest now. It encrypts as before until all its pods can read what is encrypted from now on.
func (s *state) gardenEncryption(ctx context.Context) (encryption.Values, error) {
	if !s.source.EncryptsMoreOfGarden() {
		return s.source.GardenEncryption()
	}
	mark, err := s.source.GardenEncryptionMark()
	if err != nil {
		return encryption.Values{}, err
	}
	service, err := s.apiServerService(ctx)
	if err != nil || service.Annotations[knownEncryption] == mark {
		if err != nil {
			return encryption.Values{}, err
		}
		return s.source.GardenEncryption()
	}
	return s.source.FormerGardenEncryption()
}

// apiServerService reads the Service of gardener-apiserver, which may not exist yet.
func (s *state) apiServerService(ctx context.Context) (*corev1.Service, error) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: gardenerapiserver.Name}}
	if err := s.RuntimeAPI.Get(ctx, client.ObjectKeyFromObject(service), service); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Service %q: %w", service.Name, err)
	}
	return service, nil
}

// encryptionTasks have gardener-apiserver write again what it encrypts in another way, as the stage of kube-apiserver does.
func (s *state) encryptionTasks() []flow.Task {
	if !s.source.ChangesGardenEncryption() {
		return nil
	}
	rewrite := flow.Await(stage.PodsTimeout, "gardener-reencrypt", "Rewriting resources of Gardener with the new encryption", s.rewriteGarden, "gardener-apiserver-ready")
	if !s.source.EncryptsMoreOfGarden() {
		return []flow.Task{rewrite}
	}
	rewrite.After = append(rewrite.After, "gardener-encryption-key")
	return []flow.Task{
		flow.Await(stage.PodsTimeout, "gardener-encryption-key", "Deploying gardener-apiserver with the new encryption", func(ctx context.Context) error {
			mark, err := s.source.GardenEncryptionMark()
			if err != nil {
				return err
			}
			return s.redeployAPIServer(ctx, knownEncryption, mark)
		}, "gardener-apiserver-ready"),
		rewrite,
	}
}

// redeployAPIServer deploys gardener-apiserver a second time, with what an annotation of its Service says since then, and waits until all of its pods have it.
// A run that is interrupted does not go back.
func (s *state) redeployAPIServer(ctx context.Context, annotation, value string) error {
	service, err := s.apiServerService(ctx)
	if err != nil {
		return err
	}
	if err := kube.PatchMetadata(ctx, s.RuntimeAPI, service, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, annotation, value)
	}); err != nil {
		return err
	}
	if err := s.deployAPIServer(ctx); err != nil {
		return err
	}
	if err := s.awaitAPIServer(ctx); err != nil {
		return err
	}
	return s.run.OldPodsGone(ctx, gardenerapiserver.Labels())
}

// rewriteGarden has gardener-apiserver write all objects again whose encryption has changed.
func (s *state) rewriteGarden(ctx context.Context) error {
	virtual, err := s.run.Target.Client(ctx)
	if err != nil {
		return err
	}
	desired, err := s.source.GardenEncryption()
	if err != nil {
		return err
	}
	for _, resource := range slices.Concat(desired.Resources, desired.PlainResources) {
		err := encryption.Rewrite(ctx, virtual, schema.ParseGroupResource(resource))
		if err != nil && !meta.IsNoMatchError(err) { // a resource that does not exist has no objects, and must not block this for ever
			return fmt.Errorf("in the virtual garden: %w", err)
		}
	}
	return nil
}
