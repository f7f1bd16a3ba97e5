package foundation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/errorcode"
)

// configMap is a kind that spec.resources names, besides those of credentials.
const configMap = "ConfigMap"

const (
	// maxReferenced is the limit for the size of all objects that spec.resources of one owner names. Copies are in the etcd of the seed, which all
	// its shoots share; sixteen Secrets of the largest size that Kubernetes has are more than extensions need.
	maxReferenced = 16 * (corev1.MaxSecretSize + referencedOverhead)
	// referencedOverhead is added to the data of each object, so that their number is limited too, to about a thousand: a copy has metadata, and
	// costs a request to the garden and one to the seed in each reconciliation.
	referencedOverhead = 16 << 10
)

// References are the objects that spec.resources of a Shoot or Seed names, and their copies in the seed.
type References struct {
	Run *stage.Run
	// Namespace is that of the objects in the garden.
	Namespace string
	// Owner is the Shoot or Seed, for tokens of WorkloadIdentities.
	Owner securityv1alpha1.ContextObject
	// Resources are those of the spec.
	Resources []corev1beta1.NamedResourceReference
	// Deleting says that the owner is being deleted, so that objects may be missing.
	Deleting bool
	// Labels are on the copies, besides their role. They tell the copies from those of other owners in the same namespace of the seed.
	Labels map[string]string
}

func (in Inputs) references() References {
	return References{
		Run: in.Run, Namespace: in.Shoot.Namespace, Resources: in.Shoot.Spec.Resources, Deleting: in.Shoot.DeletionTimestamp != nil, Owner: securityv1alpha1.ContextObject{
			Kind: "Shoot", APIVersion: corev1beta1.SchemeGroupVersion.String(), Namespace: &in.Shoot.Namespace, Name: in.Shoot.Name, UID: in.Shoot.UID,
		},
	}
}

func (r References) labels() client.MatchingLabels {
	labels := client.MatchingLabels{constants.GardenRole: constants.GardenRoleResourceReference}
	maps.Copy(labels, r.Labels)
	return labels
}

// Copy copies the objects from the garden. Their labels and annotations stay there, as users write them.
func (r References) Copy(ctx context.Context) error {
	objects, size := make([]client.Object, 0, len(r.Resources)), 0
	for _, resource := range r.Resources {
		ref := resource.ResourceRef
		key := client.ObjectKey{Namespace: r.Namespace, Name: ref.Name}
		copied := metav1.ObjectMeta{Namespace: r.Run.Namespace, Name: usercopy.Reference(ref.Kind, ref.Name), Labels: r.labels()}
		var object client.Object
		var err error
		switch ref.Kind {
		case configMap:
			from := &corev1.ConfigMap{}
			err = r.Run.GardenAPI.Get(ctx, key, from)
			object = &corev1.ConfigMap{ObjectMeta: copied, Data: from.Data, BinaryData: from.BinaryData}
		case usercredential.Secret:
			from := &corev1.Secret{}
			err = r.Run.GardenAPI.Get(ctx, key, from)
			object = &corev1.Secret{ObjectMeta: copied, Data: from.Data, Type: from.Type}
		case usercredential.WorkloadIdentity:
			var from usercredential.Credential
			from, err = usercredential.ReadFor(ctx, r.Run.GardenAPI, r.Owner, corev1.ObjectReference{Kind: ref.Kind, Namespace: key.Namespace, Name: key.Name})
			object = from.Secret(copied.Namespace, copied.Name, copied.Labels)
		default:
			err = errorcode.With(fmt.Errorf("kind %q is not supported", ref.Kind), corev1beta1.ErrorConfigurationProblem)
		}
		if apierrors.IsNotFound(err) && r.Deleting {
			continue // extensions delete with what was copied before
		}
		if err != nil {
			return errorcode.IfNotFound(fmt.Errorf("spec.resources: %q: %s %q: %w", resource.Name, ref.Kind, ref.Name, err), corev1beta1.ErrorConfigurationProblem)
		}
		if size += sizeOf(object); size > maxReferenced {
			return errorcode.With(fmt.Errorf("spec.resources: %q: %s %q: the data of all objects, and %d KiB for each, must not be larger than %d KiB", resource.Name,
				ref.Kind, ref.Name, referencedOverhead>>10, maxReferenced>>10), corev1beta1.ErrorConfigurationProblem)
		}
		objects = append(objects, object)
	}
	return r.Run.Apply(ctx, objects...)
}

// sizeOf is the size of the data of an object, and what is added for each.
func sizeOf(object client.Object) int {
	size := referencedOverhead
	switch object := object.(type) {
	case *corev1.ConfigMap:
		for key, value := range object.Data {
			size += len(key) + len(value)
		}
		for key, value := range object.BinaryData {
			size += len(key) + len(value)
		}
	case *corev1.Secret:
		for key, value := range object.Data {
			size += len(key) + len(value)
		}
	}
	return size
}

// DeleteStale deletes copies of objects that spec.resources no longer names. Extensions must have reconciled since.
func (r References) DeleteStale(ctx context.Context) error {
	var errs []error
	for _, kind := range []string{configMap, usercredential.Secret} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		err := r.Run.SeedAPI.List(ctx, list, client.InNamespace(r.Run.Namespace), r.labels())
		if err != nil {
			errs = append(errs, fmt.Errorf("list copies of kind %s: %w", kind, err))
			continue
		}
		for i := range list.Items {
			object := &list.Items[i]
			if r.names(kind, object.Name) {
				continue
			}
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			errs = append(errs, client.IgnoreNotFound(r.Run.SeedAPI.Delete(ctx, object)))
		}
	}
	return errors.Join(errs...)
}

// names reports whether a copy is one of an object that spec.resources names.
func (r References) names(kind, name string) bool {
	return slices.ContainsFunc(r.Resources, func(resource corev1beta1.NamedResourceReference) bool {
		ref := resource.ResourceRef
		return (ref.Kind == kind || ref.Kind == usercredential.WorkloadIdentity && kind == usercredential.Secret) && usercopy.Reference(ref.Kind, ref.Name) == name
	})
}
