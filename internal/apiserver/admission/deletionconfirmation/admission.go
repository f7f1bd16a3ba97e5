// Package deletionconfirmation refuses to delete objects before the deletion is confirmed. With spec.dualApprovalForDeletion of the
// Project, the user who confirmed the deletion of a Shoot cannot delete it.
//
// The annotation confirmation.gardener.cloud/deletion=true confirms a deletion. The user who confirmed the one of a Shoot is in another
// annotation, which only this plugin writes.
package deletionconfirmation

import (
	"context"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "DeletionConfirmation"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// Plugin keeps annotations of Shoots, and checks deletions. Reads Projects, Shoots and ShootStates.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Admit implements admission.MutationInterface: it records the user who confirmed the deletion of a Shoot.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1beta1.Shoot)
	switch {
	case !confirmed(shoot):
		delete(shoot.Annotations, constants.DeletionConfirmedBy)
	case old != nil && confirmed(old) && old.Annotations[constants.DeletionConfirmedBy] != "":
		shoot.Annotations[constants.DeletionConfirmedBy] = old.Annotations[constants.DeletionConfirmedBy]
	default:
		shoot.Annotations[constants.DeletionConfirmedBy] = a.GetUserInfo().GetName()
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Delete || a.GetSubresource() != "" || a.GetResource().Group != corev1beta1.SchemeGroupVersion.Group {
		return nil
	}
	var (
		obj  client.Object
		list client.ObjectList
	)
	switch a.GetResource().Resource {
	case "shoots":
		obj, list = &corev1beta1.Shoot{}, &corev1beta1.ShootList{}
	case "projects":
		obj, list = &corev1beta1.Project{}, &corev1beta1.ProjectList{}
	case "shootstates":
		obj, list = &corev1beta1.ShootState{}, &corev1beta1.ShootStateList{}
	default:
		return nil
	}
	objects, err := p.toBeDeleted(ctx, a, obj, list)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := p.check(ctx, a, obj); err != nil {
			return err
		}
	}
	return nil
}

// toBeDeleted returns the object of a request, or all of a collection. A label selector may exclude some of these, but admission does
// not get it: all of them must be confirmed.
func (p *Plugin) toBeDeleted(ctx context.Context, a admission.Attributes, obj client.Object, list client.ObjectList) ([]client.Object, error) {
	// A confirmation of a moment ago must count.
	if a.GetName() != "" {
		key := client.ObjectKey{Namespace: a.GetNamespace(), Name: a.GetName()}
		if err := p.GardenCache.Get(ctx, key, obj, initializer.Fresh); err != nil {
			return nil, err
		}
		return []client.Object{obj}, nil
	}
	if err := p.GardenCache.List(ctx, list, client.InNamespace(a.GetNamespace()), initializer.Fresh); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}

func (p *Plugin) check(ctx context.Context, a admission.Attributes, obj client.Object) error {
	if !confirmed(obj) {
		return admission.NewForbidden(a, fmt.Errorf("the deletion of %q is not confirmed: annotate it with %s=true first",
			obj.GetName(), constants.ConfirmationDeletion))
	}
	// A second request changes nothing.
	shoot, ok := obj.(*corev1beta1.Shoot)
	if !ok || shoot.DeletionTimestamp != nil {
		return nil
	}
	projects := &corev1beta1.ProjectList{}
	if err := p.GardenCache.List(ctx, projects, client.MatchingFields{"spec.namespace": shoot.Namespace}); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("find the Project of namespace %q: %w", shoot.Namespace, err))
	}
	for i := range projects.Items {
		dual, err := needsDualApproval(&projects.Items[i], shoot, a.GetUserInfo().GetName())
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if dual && shoot.Annotations[constants.DeletionConfirmedBy] == a.GetUserInfo().GetName() {
			return admission.NewForbidden(a, fmt.Errorf("spec.dualApprovalForDeletion of Project %q: user %q confirmed the deletion of Shoot %q, so another user must delete it",
				projects.Items[i].Name, a.GetUserInfo().GetName(), shoot.Name))
		}
	}
	return nil
}

// needsDualApproval reports whether a Project requires that one user confirms and another one deletes a Shoot.
func needsDualApproval(project *corev1beta1.Project, shoot *corev1beta1.Shoot, username string) (bool, error) {
	for _, config := range project.Spec.DualApprovalForDeletion {
		if config.Resource != "shoots" {
			continue
		}
		if _, _, err := serviceaccount.SplitUsername(username); err == nil && config.IncludeServiceAccounts != nil && !*config.IncludeServiceAccounts {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&config.Selector)
		if err != nil {
			return false, fmt.Errorf("selector in spec.dualApprovalForDeletion of Project %q: %w", project.Name, err)
		}
		if selector.Matches(labels.Set(shoot.Labels)) {
			return true, nil
		}
	}
	return false, nil
}

// confirmed reports whether the deletion of an object is confirmed.
func confirmed(obj metav1.Object) bool {
	is, err := strconv.ParseBool(obj.GetAnnotations()[constants.ConfirmationDeletion])
	return err == nil && is
}
