package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/flow"
)

// pageSize is how many objects are read at once to be written again.
const pageSize = 500

// reencryption is the task that has the API server write again what it encrypts, while the rotation of its key is prepared, or when the
// owner has changed what is encrypted. Afterwards nobody needs the old key, or the key for what is no longer encrypted.
func (h *hosted) reencryption() []flow.Task {
	c := h.shoot.Status.Credentials
	rotates := c != nil && c.Rotation != nil && c.Rotation.ETCDEncryptionKey != nil && c.Rotation.ETCDEncryptionKey.Phase == corev1beta1.RotationPreparing
	if !rotates && !changesEncryption(h.shoot) {
		return nil
	}
	return []flow.Task{lasting(podsTimeout, task("reencrypt", "Encrypting data as it is to be now", h.reencrypt, "tokens"))}
}

func (h *hosted) reencrypt(ctx context.Context) error {
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	encryption := h.encryption()
	for _, name := range slices.Concat(encryption.Resources, encryption.FormerResources) {
		kind, err := shoot.RESTMapper().KindFor(schema.ParseGroupResource(name).WithVersion(""))
		if meta.IsNoMatchError(err) {
			continue // a kind of users that is not there has no objects
		}
		if err != nil {
			return fmt.Errorf("find kind of %q in the shoot: %w", name, err)
		}
		if err := rewrite(ctx, shoot, kind); err != nil {
			return err
		}
	}
	return nil
}

// rewrite sends a patch without content for each object of a kind: the API server writes what it has read with an old key.
func rewrite(ctx context.Context, shoot client.Client, kind schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		if err := shoot.List(ctx, list, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("list %s in the shoot: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			if err := shoot.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("write %s %s again in the shoot: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}
