package restriction

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
)

// seedGardenlet decides on the Gardenlet of a seed, which says what the gardener-operator deploys, and where. A gardenlet creates its own, to update
// itself, and writes the status. What the operator does with it is for operators to say.
func seedGardenlet(ctx context.Context, v *Values, of requester.Seed, r *Request, gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	switch {
	case of.Type != requester.Gardenlet:
		return forbid("extensions must not write %s", r.Resource)
	case r.Namespace != constants.GardenNamespace:
		return refuse(http.StatusBadRequest, "Gardenlets of seeds are in namespace %q", constants.GardenNamespace)
	case r.Name != of.Name:
		return forbid("Gardenlet %q does not belong to seed %q", r.Name, of.Name)
	case r.Operation == admissionv1.Create:
		if err := newGardenlet(gardenlet); err != nil {
			return err
		}
		return v.gardenletDomains(ctx, gardenlet)
	}
	return sameGardenlet(r, gardenlet)
}

// newGardenlet refuses what only operators may request from the gardener-operator.
func newGardenlet(gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	_, operates := gardenlet.Annotations[constants.GardenerOperation]
	switch {
	case gardenlet.Spec.KubeconfigSecretRef != nil:
		return forbid("Gardenlet %q must not have spec.kubeconfigSecretRef: only an operator may set it", gardenlet.Name)
	case operates:
		return forbid("Gardenlet %q must not have the annotation %s: only an operator may set it", gardenlet.Name, constants.GardenerOperation)
	case !apiequality.Semantic.DeepEqual(gardenlet.Status, seedmanagementv1alpha1.GardenletStatus{}):
		return forbid("Gardenlet %q must not have a status when it is created", gardenlet.Name)
	case gardenlet.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet] != "true":
		return forbid("Gardenlet %q must have the annotation %s=true: a gardenlet creates it", gardenlet.Name, seedmanagementv1alpha1.AnnotationCreatedByGardenlet)
	}
	return nil
}

// sameGardenlet refuses changes of the spec and of metadata. An operation may be removed, which the gardenlet has done.
func sameGardenlet(r *Request, gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	old, ok := r.Old.(*seedmanagementv1alpha1.Gardenlet)
	if !ok {
		return refuse(http.StatusBadRequest, "unexpected stored object %T for %s", r.Old, r.Resource)
	}
	before, after := old.Spec.DeepCopy(), gardenlet.Spec.DeepCopy()
	before.Config, after.Config = nil, nil
	switch {
	case !apiequality.Semantic.DeepEqual(before, after), !sameJSON(old.Spec.Config, gardenlet.Spec.Config):
		return forbid("the spec of Gardenlet %q must not be changed by the gardenlet: only an operator may change it", gardenlet.Name)
	case !maps.Equal(old.Labels, gardenlet.Labels):
		return forbid("labels of Gardenlet %q must not be changed by the gardenlet", gardenlet.Name)
	case !apiequality.Semantic.DeepEqual(old.OwnerReferences, gardenlet.OwnerReferences):
		return forbid("owner references of Gardenlet %q must not be changed by the gardenlet", gardenlet.Name)
	}
	for _, operation := range operations(gardenlet) {
		if !slices.Contains(operations(old), operation) {
			return forbid("operation %q of Gardenlet %q must not be requested by the gardenlet", operation, gardenlet.Name)
		}
	}
	if !maps.Equal(otherAnnotations(old), otherAnnotations(gardenlet)) {
		return forbid("annotations of Gardenlet %q must not be changed by the gardenlet, other than removing %s", gardenlet.Name, constants.GardenerOperation)
	}
	return nil
}

func operations(gardenlet *seedmanagementv1alpha1.Gardenlet) []string {
	annotation := gardenlet.Annotations[constants.GardenerOperation]
	if annotation == "" {
		return nil
	}
	return strings.Split(annotation, constants.OperationsSeparator)
}

func otherAnnotations(gardenlet *seedmanagementv1alpha1.Gardenlet) map[string]string {
	others := maps.Clone(gardenlet.Annotations)
	delete(others, constants.GardenerOperation)
	return others
}

// sameJSON compares objects that may have been encoded again on their way.
func sameJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	decode := func(raw []byte) (value any, err error) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		return value, decoder.Decode(&value)
	}
	x, errX := decode(a.Raw)
	y, errY := decode(b.Raw)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// Mark marks a Gardenlet that the gardenlet of a seed creates, as nothing else says later who has created it.
func Mark(r *Request) {
	gardenlet, ok := r.Object.(*seedmanagementv1alpha1.Gardenlet)
	if !ok || r.Operation != admissionv1.Create || r.Resource != gardenlets.GroupResource() {
		return
	}
	if _, ofSeed := requester.OfSeed(r.User); ofSeed {
		metav1.SetMetaDataAnnotation(&gardenlet.ObjectMeta, seedmanagementv1alpha1.AnnotationCreatedByGardenlet, "true")
	}
}
