// Package seedvalidator protects Seeds with Shoots: from deletion, and from changes of settings that the Shoots rely on.
package seedvalidator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "SeedValidator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// Plugin checks Seeds. Reads Seeds, Shoots, BackupBuckets and WorkloadIdentities.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1beta1.SchemeGroupVersion.WithResource("seeds").GroupResource() || a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Delete {
		return p.validateDelete(ctx, a)
	}
	seed, ok := a.GetObject().(*corev1beta1.Seed)
	if !ok {
		return nil
	}
	if err := p.checkIdentity(ctx, a, seed); err != nil {
		return err
	}
	if old, ok := a.GetOldObject().(*corev1beta1.Seed); ok {
		return p.validateUpdate(ctx, a, seed, old)
	}
	return nil
}

// validateDelete refuses to delete a Seed with Shoots. All Seeds can be deleted at once only if none has Shoots.
func (p *Plugin) validateDelete(ctx context.Context, a admission.Attributes) error {
	names := []string{a.GetName()}
	if a.GetName() == "" {
		seeds := &corev1beta1.SeedList{}
		if err := p.GardenCache.List(ctx, seeds); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("list Seeds: %w", err))
		}
		names = nil
		for i := range seeds.Items {
			names = append(names, seeds.Items[i].Name)
		}
	}
	for _, name := range names {
		shoots, err := p.shoots(ctx, name, initializer.Fresh)
		if err != nil {
			return err
		}
		if len(shoots) > 0 {
			return admission.NewForbidden(a, fmt.Errorf("the Seed %q has Shoots: %s", name, listed(shoots)))
		}
	}
	return nil
}

// validateUpdate refuses to remove zones and domains that Shoots on a Seed use.
func (p *Plugin) validateUpdate(ctx context.Context, a admission.Attributes, seed, old *corev1beta1.Seed) error {
	zones := sets.New(old.Spec.Provider.Zones...).Difference(sets.New(seed.Spec.Provider.Zones...))
	internal := old.Spec.DNS.Internal != nil && (seed.Spec.DNS.Internal == nil || seed.Spec.DNS.Internal.Domain != old.Spec.DNS.Internal.Domain)
	domains := sets.New[string]()
	for _, d := range old.Spec.DNS.Defaults {
		domains.Insert(d.Domain)
	}
	for _, d := range seed.Spec.DNS.Defaults {
		domains.Delete(d.Domain)
	}
	if zones.Len() == 0 && !internal && domains.Len() == 0 {
		return nil
	}
	shoots, err := p.shoots(ctx, seed.Name)
	if err != nil || len(shoots) == 0 {
		return err
	}
	var errs []error
	if zones.Len() > 0 {
		errs = append(errs, fmt.Errorf("zones %s cannot go while Shoots are on the Seed", strings.Join(sets.List(zones), ", ")))
	}
	if internal {
		errs = append(errs, fmt.Errorf("the internal domain %q cannot change while Shoots are on the Seed", old.Spec.DNS.Internal.Domain))
	}
	for _, domain := range sets.List(domains) {
		using := slices.DeleteFunc(slices.Clone(shoots), func(shoot *corev1beta1.Shoot) bool {
			return shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil || !strings.HasSuffix(*shoot.Spec.DNS.Domain, "."+domain)
		})
		if len(using) > 0 {
			errs = append(errs, fmt.Errorf("the default domain %q cannot go while Shoots use it: %s", domain, listed(using)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// shoots returns the Shoots that are on a Seed or are being migrated from it.
func (p *Plugin) shoots(ctx context.Context, seed string, opts ...client.ListOption) ([]*corev1beta1.Shoot, error) {
	found := map[client.ObjectKey]*corev1beta1.Shoot{}
	for _, path := range []string{"spec.seedName", "status.seedName"} {
		list := &corev1beta1.ShootList{}
		if err := p.GardenCache.List(ctx, list, append(opts, client.MatchingFields{path: seed})...); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("list Shoots on Seed %q: %w", seed, err))
		}
		for i := range list.Items {
			found[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
		}
	}
	var shoots []*corev1beta1.Shoot
	for _, shoot := range found {
		shoots = append(shoots, shoot)
	}
	slices.SortFunc(shoots, func(a, b *corev1beta1.Shoot) int {
		return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
	})
	return shoots, nil
}

// checkIdentity refuses backup credentials that are an identity for another provider.
func (p *Plugin) checkIdentity(ctx context.Context, a admission.Attributes, seed *corev1beta1.Seed) error {
	backup := seed.Spec.Backup
	if backup == nil || backup.CredentialsRef == nil || backup.CredentialsRef.Kind != "WorkloadIdentity" {
		return nil
	}
	key := client.ObjectKey{Namespace: backup.CredentialsRef.Namespace, Name: backup.CredentialsRef.Name}
	identity := &securityv1alpha1.WorkloadIdentity{}
	if err := p.GardenCache.Get(ctx, key, identity); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read WorkloadIdentity %q: %w", key, err))
	}
	if identity.Spec.TargetSystem.Type != backup.Provider {
		return admission.NewForbidden(a, fmt.Errorf("spec.backup.credentialsRef: WorkloadIdentity %q is for %q, not for %q",
			key, identity.Spec.TargetSystem.Type, backup.Provider))
	}
	return nil
}

// shown is how many Shoots an error names.
const shown = 5

func listed(shoots []*corev1beta1.Shoot) string {
	var names []string
	for _, shoot := range shoots[:min(shown, len(shoots))] {
		names = append(names, client.ObjectKeyFromObject(shoot).String())
	}
	if more := len(shoots) - shown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
