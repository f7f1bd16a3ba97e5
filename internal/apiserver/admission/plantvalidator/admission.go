// Package plantvalidator records the user who created a Plant, and refuses new Plants in projects that are being deleted.
//
// Source: concepts-older.txt, admission plugins.
package plantvalidator

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/project"
)

// Name is the name of the plugin.
const Name = "PlantValidator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create)}
}

// Plugin completes and checks Plants. Reads Projects.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	plant, ok := a.GetObject().(*corev1beta1.Plant)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	owner, err := project.ForNamespace(ctx, p.GardenCache, a.GetNamespace())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if owner.DeletionTimestamp != nil {
		return admission.NewForbidden(a, fmt.Errorf("project %q is being deleted, so it accepts no new plants", owner.Name))
	}
	metav1.SetMetaDataAnnotation(&plant.ObjectMeta, constants.GardenCreatedBy, a.GetUserInfo().GetName())
	return nil
}
