package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
)

// referenced are the kinds of copies.
var referenced = []string{"ConfigMap", plainSecret}

// references are the tasks for what configurations of extensions refer to. They find it beside the other things of the control plane.
func (h *hosted) references() []flow.Task {
	if len(h.shoot.Spec.Resources) == 0 {
		return nil
	}
	return []flow.Task{task("references", "Copying what extensions refer to", h.copyReferences, "namespace")}
}

// copyReferences copies the objects that spec.resources names from the garden. Their labels and annotations stay there, as users write them.
func (h *hosted) copyReferences(ctx context.Context) error {
	var objects []client.Object
	for _, resource := range h.shoot.Spec.Resources {
		ref := resource.ResourceRef
		key := client.ObjectKey{Namespace: h.shoot.Namespace, Name: ref.Name}
		copied := metav1.ObjectMeta{
			Namespace: h.namespace, Name: usercopy.Reference(ref.Kind, ref.Name),
			Labels: map[string]string{constants.GardenRole: constants.GardenRoleResourceReference},
		}
		var object client.Object
		var err error
		switch ref.Kind {
		case "ConfigMap":
			from := &corev1.ConfigMap{}
			err = h.live.Get(ctx, key, from)
			object = &corev1.ConfigMap{ObjectMeta: copied, Data: from.Data, BinaryData: from.BinaryData}
		case plainSecret:
			from := &corev1.Secret{}
			err = h.live.Get(ctx, key, from)
			object = &corev1.Secret{ObjectMeta: copied, Data: from.Data, Type: from.Type}
		case workloadIdentity:
			var from credential
			from, err = h.identityOf(ctx, h.shoot, key)
			object = from.secret(copied.Namespace, copied.Name, copied.Labels)
		default:
			err = fmt.Errorf("kind %q is not supported", ref.Kind)
		}
		if err != nil {
			return errorcode.With(fmt.Errorf("spec.resources: %q: %s %q: %w", resource.Name, ref.Kind, ref.Name, err), corev1beta1.ErrorConfigurationProblem)
		}
		objects = append(objects, object)
	}
	return h.apply(ctx, objects...)
}

// dropReferences deletes copies of what nobody refers to any more. Extensions were told before.
func (h *hosted) dropReferences(ctx context.Context) error {
	var errs []error
	for _, kind := range referenced {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		err := h.SeedClient.List(ctx, list, client.InNamespace(h.namespace), client.MatchingLabels{constants.GardenRole: constants.GardenRoleResourceReference})
		if err != nil {
			errs = append(errs, fmt.Errorf("list copies of kind %s: %w", kind, err))
			continue
		}
		for i := range list.Items {
			object := &list.Items[i]
			if isReferenced(h.shoot, kind, object.Name) {
				continue
			}
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			errs = append(errs, client.IgnoreNotFound(h.SeedClient.Delete(ctx, object)))
		}
	}
	return errors.Join(errs...)
}

func isReferenced(shoot *corev1beta1.Shoot, kind, name string) bool {
	return slices.ContainsFunc(shoot.Spec.Resources, func(r corev1beta1.NamedResourceReference) bool {
		ref := r.ResourceRef
		return (ref.Kind == kind || ref.Kind == workloadIdentity && kind == plainSecret) && usercopy.Reference(ref.Kind, ref.Name) == name
	})
}
