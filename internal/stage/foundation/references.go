package foundation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/errorcode"
)

// configMap is a kind that spec.resources names, besides those of credentials.
const configMap = "ConfigMap"

// copyReferences copies the objects that spec.resources names from the garden. Their labels and annotations stay there, as users write them.
func (in Inputs) copyReferences(ctx context.Context) error {
	objects := make([]client.Object, 0, len(in.Shoot.Spec.Resources))
	for _, resource := range in.Shoot.Spec.Resources {
		ref := resource.ResourceRef
		key := client.ObjectKey{Namespace: in.Shoot.Namespace, Name: ref.Name}
		copied := metav1.ObjectMeta{
			Namespace: in.Run.Namespace, Name: usercopy.Reference(ref.Kind, ref.Name),
			Labels: map[string]string{constants.GardenRole: constants.GardenRoleResourceReference},
		}
		var object client.Object
		var err error
		switch ref.Kind {
		case configMap:
			from := &corev1.ConfigMap{}
			err = in.Run.GardenAPI.Get(ctx, key, from)
			object = &corev1.ConfigMap{ObjectMeta: copied, Data: from.Data, BinaryData: from.BinaryData}
		case usercredential.Secret:
			from := &corev1.Secret{}
			err = in.Run.GardenAPI.Get(ctx, key, from)
			object = &corev1.Secret{ObjectMeta: copied, Data: from.Data, Type: from.Type}
		case usercredential.WorkloadIdentity:
			var from usercredential.Credential
			from, err = usercredential.Read(ctx, in.Run.GardenAPI, in.Shoot, corev1.ObjectReference{Kind: ref.Kind, Namespace: key.Namespace, Name: key.Name})
			object = from.Secret(copied.Namespace, copied.Name, copied.Labels)
		default:
			err = errorcode.With(fmt.Errorf("kind %q is not supported", ref.Kind), corev1beta1.ErrorConfigurationProblem)
		}
		if apierrors.IsNotFound(err) && in.Shoot.DeletionTimestamp != nil {
			continue // extensions delete with what was copied before
		}
		if err != nil {
			return errorcode.IfNotFound(fmt.Errorf("spec.resources: %q: %s %q: %w", resource.Name, ref.Kind, ref.Name, err), corev1beta1.ErrorConfigurationProblem)
		}
		objects = append(objects, object)
	}
	return in.Run.Apply(ctx, objects...)
}

// deleteStaleReferences deletes copies of objects that spec.resources no longer names. Extensions have reconciled since.
func (in Inputs) deleteStaleReferences(ctx context.Context) error {
	var errs []error
	for _, kind := range []string{configMap, usercredential.Secret} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace), client.MatchingLabels{constants.GardenRole: constants.GardenRoleResourceReference})
		if err != nil {
			errs = append(errs, fmt.Errorf("list copies of kind %s: %w", kind, err))
			continue
		}
		for i := range list.Items {
			object := &list.Items[i]
			if referenced(in.Shoot, kind, object.Name) {
				continue
			}
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			errs = append(errs, client.IgnoreNotFound(in.Run.SeedAPI.Delete(ctx, object)))
		}
	}
	return errors.Join(errs...)
}

// referenced reports whether a copy is one of an object that spec.resources names.
func referenced(shoot *corev1beta1.Shoot, kind, name string) bool {
	return slices.ContainsFunc(shoot.Spec.Resources, func(r corev1beta1.NamedResourceReference) bool {
		ref := r.ResourceRef
		return (ref.Kind == kind || ref.Kind == usercredential.WorkloadIdentity && kind == usercredential.Secret) && usercopy.Reference(ref.Kind, ref.Name) == name
	})
}
