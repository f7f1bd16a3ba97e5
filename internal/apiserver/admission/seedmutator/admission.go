// Package seedmutator labels Seeds with their name, as objects that belong to them have this label, and those of ManagedSeeds also with the name of the
// seed that their Shoot runs on, whose gardenlet deploys and deletes theirs.
package seedmutator

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "SeedMutator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin sets labels. Reads ManagedSeeds and their Shoots.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	seed, ok := a.GetObject().(*corev1beta1.Seed)
	if !ok {
		return nil
	}
	for key := range seed.Labels {
		if strings.HasPrefix(key, constants.PrefixSeedName) {
			delete(seed.Labels, key)
		}
	}
	if seed.Name == "" {
		return nil
	}
	metav1.SetMetaDataLabel(&seed.ObjectMeta, constants.PrefixSeedName+seed.Name, "true")
	parent, err := p.parent(ctx, seed.Name)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if parent != "" {
		metav1.SetMetaDataLabel(&seed.ObjectMeta, constants.PrefixSeedName+parent, "true")
	}
	return nil
}

// parent returns the seed that the Shoot of a ManagedSeed runs on. It is empty for other Seeds.
func (p *Plugin) parent(ctx context.Context, name string) (string, error) {
	managedSeed, key := &seedmanagementv1alpha1.ManagedSeed{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}
	if err := p.GardenCache.Get(ctx, key, managedSeed); apierrors.IsNotFound(err) || err == nil && managedSeed.Spec.Shoot == nil {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read ManagedSeed %q: %w", key, err)
	}
	shoot, key := &corev1beta1.Shoot{}, client.ObjectKey{Namespace: key.Namespace, Name: managedSeed.Spec.Shoot.Name}
	if err := p.GardenCache.Get(ctx, key, shoot); apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read Shoot %q: %w", key, err)
	}
	return ptr.Deref(shoot.Spec.SeedName, ""), nil
}
