// Package shootmutator sets what users leave open in Shoots: versions, images and networks, from the profile and the seed. It
// also records the user who created a shoot, and the extra tasks of its next reconciliation.
package shootmutator

import (
	"context"
	"errors"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// Name is the name of the plugin.
const Name = "ShootMutator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clock.RealClock{}}, nil
	})
}

// Plugin changes Shoots. Reads the profile and the Seed of the shoot.
type Plugin struct {
	*admission.Handler
	initializer.Base
	clock clock.PassiveClock
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" && a.GetSubresource() != "binding" {
		return nil
	}
	old, isUpdate := a.GetOldObject().(*corev1beta1.Shoot)
	if isUpdate && apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec) && apiequality.Semantic.DeepEqual(shoot.ObjectMeta, old.ObjectMeta) {
		return nil
	}
	if !isUpdate {
		if name := shoot.Spec.CloudProfileName; name != nil && *name != "" && shoot.Spec.CloudProfile != nil {
			return errors.New("spec.cloudProfile and spec.cloudProfileName cannot both be set; leave out spec.cloudProfileName")
		}
		old = &corev1beta1.Shoot{}
		addCreator(shoot, a.GetUserInfo().GetName())
		addEncryptionKeyRotation(shoot)
	}
	profile, err := cloudprofile.Spec(ctx, p.GardenCache, shoot)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("set what Shoot %q leaves open: %w", shoot.Name, err))
	}
	if profile == nil {
		return nil // validation says that it is missing
	}
	if err := cloudprofile.CheckChange(ctx, p.GardenCache, shoot, old); err != nil {
		return err
	}
	if shoot.Spec.SeedName != nil {
		seed := &corev1beta1.Seed{}
		if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: *shoot.Spec.SeedName}, seed); err != nil {
			// Not wrapped: its code would become that of the response.
			return fmt.Errorf("read Seed %q: %v", *shoot.Spec.SeedName, err) //nolint:errorlint // see above
		}
		addNetworks(&shoot.Spec, seed)
	}
	addTasks(shoot, old, !isUpdate)
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	now := p.clock.Now()
	errs := addKubernetesVersions(&shoot.Spec, profile, now)
	errs = append(errs, addMachines(&shoot.Spec, &old.Spec, profile, now)...)
	if len(errs) > 0 {
		return admission.NewForbidden(a, errs.ToAggregate())
	}
	return nil
}
