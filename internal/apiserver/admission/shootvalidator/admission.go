// Package shootvalidator checks Shoots against what they refer to: the project, the profile, the seed and the credentials.
//
// What a Shoot says by itself is checked in internal/validation/core.
package shootvalidator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	apiserverinitializer "k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/project"
	"gardener.cloud/gardener/internal/apiserver/features"
	"gardener.cloud/gardener/internal/cloudprofile"
)

const (
	// Name is the name of the plugin.
	Name = "ShootValidator"

	bindingSubresource = "binding"
)

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), clock: clock.RealClock{}}, nil
	})
}

// Plugin checks Shoots. Reads the project, profile, seed, exposure class and credentials binding of the shoot, other shoots if it is bound to a seed
// or gets a domain, and Secrets of admission plugins in the kube-apiserver.
type Plugin struct {
	*admission.Handler
	initializer.Base
	// liveMigration is whether shoots can move to another seed without an interruption of their kube-apiserver.
	liveMigration bool
	clock         clock.PassiveClock
}

var (
	_ admission.ValidationInterface      = &Plugin{}
	_ apiserverinitializer.WantsFeatures = &Plugin{}
)

// InspectFeatureGates implements the interface of plugins that depend on feature gates.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.liveMigration = gates.Enabled(features.LiveControlPlaneMigration)
}

// input is what the checks read. They do not change it.
type input struct {
	shoot *corev1beta1.Shoot
	// old is empty for a new shoot.
	old     *corev1beta1.Shoot
	isNew   bool
	binding bool
	// liveMigration is whether shoots can move to another seed without an interruption of their kube-apiserver.
	liveMigration bool
	project       *corev1beta1.Project
	profile       *corev1beta1.CloudProfileSpec
	// seed is nil as long as the shoot is bound to none; oldSeed is set only if it moves from one seed to another.
	seed, oldSeed *corev1beta1.Seed
	// exposureClass is set only if the shoot moves from one seed to another, and has one.
	exposureClass *corev1beta1.ExposureClass
	// credentialsProviders are the provider types of the credentials; empty if the shoot names no credentials.
	credentialsProviders []string
	now                  time.Time
}

func (in *input) specChanged() bool {
	return !apiequality.Semantic.DeepEqual(in.shoot.Spec, in.old.Spec)
}
func (in *input) deleting() bool { return in.shoot.DeletionTimestamp != nil }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1beta1.Resource("shoots") || a.GetSubresource() != "" &&
		a.GetSubresource() != bindingSubresource {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1beta1.Shoot)
	if a.GetOperation() == admission.Delete {
		if old != nil && a.GetSubresource() == "" {
			return forbid(a, checkDeletion(old))
		}
		return nil
	}
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok {
		return nil
	}
	in := &input{
		shoot: shoot, old: old, isNew: old == nil, binding: a.GetSubresource() == bindingSubresource, liveMigration: p.liveMigration,
		now: p.clock.Now(),
	}
	if in.isNew {
		in.old = &corev1beta1.Shoot{}
	} else if apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec) && apiequality.Semantic.DeepEqual(shoot.ObjectMeta, old.ObjectMeta) &&
		!in.binding {
		return nil
	}
	if in.binding && apiequality.Semantic.DeepEqual(shoot.Spec.SeedName, old.Spec.SeedName) {
		return fmt.Errorf("shoot %q is bound to this seed already", shoot.Name)
	}
	if err := p.read(ctx, in); err != nil {
		return err
	}

	// Without these the other checks make no sense.
	if err := checkProject(in); err != nil {
		if invalid := (*field.Error)(nil); errors.As(err, &invalid) {
			return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{invalid})
		}
		return forbid(a, err)
	}
	if err := p.checkScheduling(ctx, a, in); err != nil {
		return forbid(a, err)
	}
	if err := checkHibernation(in); err != nil {
		return forbid(a, err)
	}
	if err := p.checkCredentialsChange(ctx, a, in); err != nil {
		return forbid(a, err)
	}

	errs := validate(in)
	errs = append(errs, p.admissionPlugins(ctx, in)...)
	errs = append(errs, p.authorizers(ctx, in)...)
	errs = append(errs, p.managedIssuer(ctx, in)...)
	errs = append(errs, p.domain(ctx, in)...)
	if len(errs) > 0 {
		return forbid(a, errs.ToAggregate())
	}
	return nil
}

func forbid(a admission.Attributes, err error) error {
	if err == nil {
		return nil
	}
	return admission.NewForbidden(a, err)
}

// validate runs all checks that need only the input.
func validate(in *input) field.ErrorList {
	errs := seedSelector(in)
	errs = append(errs, failureTolerance(in)...)
	errs = append(errs, rawExtensions(&in.shoot.Spec)...)
	errs = append(errs, networks(in)...)
	errs = append(errs, liveMigration(in)...)
	if in.deleting() || in.profile == nil {
		return errs
	}
	errs = append(errs, versions(in)...)
	errs = append(errs, region(in)...)
	errs = append(errs, accessRestrictions(in)...)
	errs = append(errs, controlPlaneZones(in)...)
	// For another provider each check of a pool would fail.
	if providerErrs := provider(in); len(providerErrs) > 0 {
		return append(errs, providerErrs...)
	}
	errs = append(errs, workers(in)...)
	return append(errs, limits(in)...)
}

// read reads the objects that the shoot refers to.
func (p *Plugin) read(ctx context.Context, in *input) error {
	var err error
	if in.project, err = project.ForNamespace(ctx, p.GardenCache, in.shoot.Namespace); err != nil {
		return apierrors.NewInternalError(err)
	}
	if in.profile, err = cloudprofile.Spec(ctx, p.GardenCache, in.shoot); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("cannot check %s: %w", in.shoot.Name, err))
	}
	if err := cloudprofile.CheckChange(ctx, p.GardenCache, in.shoot, in.old); err != nil {
		return err
	}
	if in.seed, err = p.readSeed(ctx, in.shoot.Spec.SeedName); err != nil {
		return err
	}
	if rescheduled(in) {
		if in.oldSeed, err = p.readSeed(ctx, in.old.Spec.SeedName); err != nil {
			return err
		}
		if in.exposureClass, err = p.readExposureClass(ctx, in.shoot.Spec.ExposureClassName); err != nil {
			return err
		}
	}
	in.credentialsProviders, err = p.readCredentialsProviders(ctx, in.shoot)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func (p *Plugin) readSeed(ctx context.Context, name *string) (*corev1beta1.Seed, error) {
	if name == nil {
		return nil, nil
	}
	seed := &corev1beta1.Seed{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: *name}, seed); err != nil {
		// Not wrapped: its code would become that of the response.
		return nil, fmt.Errorf("read Seed %q: %v", *name, err) //nolint:errorlint // see above
	}
	return seed, nil
}

func (p *Plugin) readExposureClass(ctx context.Context, name *string) (*corev1beta1.ExposureClass, error) {
	if name == nil {
		return nil, nil
	}
	class := &corev1beta1.ExposureClass{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: *name}, class); err != nil {
		return nil, fmt.Errorf("read ExposureClass %q: %v", *name, err) //nolint:errorlint // like a Seed
	}
	return class, nil
}
