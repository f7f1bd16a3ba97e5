package shootdns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// domains are those that records of the landscape are in.
type domains struct {
	// offered are the default domains of a seed, the preferred one first.
	offered []string
	// defaults are the default domains of all seeds. Below each one, every project has a domain with its name.
	defaults []string
	// internal are the internal domains of all seeds, and ingress those of their ingress. No Shoot's domain is in these.
	internal, ingress []string
}

// readDomains reads the domains of the landscape, and those that a seed offers. Without a seed, there are none of the latter.
func (p *Plugin) readDomains(ctx context.Context, seed *corev1beta1.Seed) (domains, error) {
	garden, err := p.gardenDefaults(ctx)
	if err != nil {
		return domains{}, err
	}
	seeds := &corev1beta1.SeedList{}
	if err := p.GardenCache.List(ctx, seeds); err != nil {
		return domains{}, apierrors.NewInternalError(fmt.Errorf("list Seeds: %w", err))
	}
	result := domains{defaults: slices.Clone(garden)}
	for i := range seeds.Items {
		spec := &seeds.Items[i].Spec
		result.defaults = append(result.defaults, ofSeed(spec)...)
		if spec.DNS.Internal != nil {
			result.internal = append(result.internal, spec.DNS.Internal.Domain)
		}
		if spec.Ingress != nil {
			result.ingress = append(result.ingress, spec.Ingress.Domain)
		}
	}
	if seed != nil {
		if result.offered = ofSeed(&seed.Spec); len(result.offered) == 0 {
			result.offered = garden
		}
	}
	return result, nil
}

// offered returns the default domains of a seed, the preferred one first. Most shoots that are bound need no more: other seeds are not read.
func (p *Plugin) offered(ctx context.Context, seed *corev1beta1.Seed) ([]string, error) {
	if own := ofSeed(&seed.Spec); len(own) > 0 {
		return own, nil
	}
	return p.gardenDefaults(ctx)
}

// ofSeed returns the default domains that a seed has itself.
func ofSeed(spec *corev1beta1.SeedSpec) []string {
	var names []string
	for _, d := range spec.DNS.Defaults {
		names = append(names, d.Domain)
	}
	return names
}

// gardenDefaults returns the default domains of seeds that have none themselves, the preferred one first: those of the Secrets in the garden
// namespace.
func (p *Plugin) gardenDefaults(ctx context.Context) ([]string, error) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.KubeAPI.List(ctx, secrets, initializer.FromCache, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleDefaultDomain,
	}); err != nil {
		return nil, fmt.Errorf("list Secrets of default domains: %v", err) //nolint:errorlint // its code would become that of the response
	}
	priority := func(secret metav1.PartialObjectMetadata) int {
		n, err := strconv.Atoi(secret.Annotations[constants.DNSDefaultDomainPriority])
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortStableFunc(secrets.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for _, secret := range secrets.Items {
		if domain := secret.Annotations[constants.DNSDomain]; domain != "" {
			names = append(names, domain)
		}
	}
	return names, nil
}

// assign gives a shoot the domain that it has by default.
func assign(shoot *corev1beta1.Shoot, projectName, domain string) {
	name := shoot.Name
	if name == "" && shoot.GenerateName != "" {
		// With generateName the name is not known yet, but the domain is needed now.
		name = names.SimpleNameGenerator.GenerateName(shoot.GenerateName)
	}
	if shoot.Spec.DNS == nil {
		shoot.Spec.DNS = &corev1beta1.DNS{}
	}
	full := fmt.Sprintf("%s.%s.%s", name, projectName, domain)
	shoot.Spec.DNS.Domain = &full
}

// check checks the domain of a Shoot, which has one, against those of the landscape: it must not be another project's or one that names of
// the landscape are in, also if the owner of the Shoot takes care of the records, as kube-apiservers are reached by the name. Records in a
// default domain are written with the credentials of the landscape, so the seed has to offer the domain, if there is a seed yet.
func check(dns *corev1beta1.DNS, seedName *string, projectName string, in domains) field.ErrorList {
	path := field.NewPath("spec", "dns")
	domain := dnsname.Of(dns)
	if reserved := dnsname.Closest(domain, slices.Concat(in.internal, in.ingress)); reserved != "" {
		return field.ErrorList{field.Invalid(path.Child("domain"), domain, reserved+" and what is below is reserved for names of seeds")}
	}
	// It would keep all other Shoots from having a domain there.
	for _, other := range slices.Concat(in.defaults, in.internal) {
		if domain != other && dnsname.Within(other, domain) {
			return field.ErrorList{field.Invalid(path.Child("domain"), domain, "is above "+other+", which has the names of other shoots")}
		}
	}
	def := dnsname.Closest(domain, in.defaults)
	if def == "" {
		return nil
	}
	var errs field.ErrorList
	if !strings.HasSuffix(domain, "."+projectName+"."+def) {
		errs = append(errs, field.Invalid(path.Child("domain"), domain, fmt.Sprintf("below %s must be of the form NAME.%s.%s", def,
			projectName, def)))
	}
	if seedName != nil && !dnsname.Unmanaged(dns) && !slices.Contains(in.offered, def) {
		errs = append(errs, field.Invalid(path.Child("domain"), domain, fmt.Sprintf("seed %q does not offer the default domain %s", *seedName, def)))
	}
	return append(errs, checkProviders(dns, def)...)
}

// checkProviders checks that the records of a domain below a default domain use the credentials of the landscape, not those of a provider of
// the shoot.
func checkProviders(dns *corev1beta1.DNS, def string) field.ErrorList {
	if def == "" || dnsname.Unmanaged(dns) {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "dns", "providers")
	for i, provider := range dns.Providers {
		if dnsname.IsPrimary(provider) {
			errs = append(errs, field.Invalid(path.Index(i).Child("primary"), true, "is not possible with a domain below "+def))
		}
	}
	return errs
}

func needsPrimary(dns *corev1beta1.DNS) bool {
	return dns != nil && len(dns.Providers) > 0 && !slices.ContainsFunc(dns.Providers, dnsname.IsPrimary)
}

// setPrimary makes the first provider the primary one if there is none yet.
func setPrimary(dns *corev1beta1.DNS) {
	if needsPrimary(dns) {
		dns.Providers[0].Primary = new(true)
	}
}

// keepPrimary marks the provider that was the primary one if none is marked any more.
func keepPrimary(dns, old *corev1beta1.DNS) {
	if !needsPrimary(dns) || old == nil {
		return
	}
	i := slices.IndexFunc(old.Providers, dnsname.IsPrimary)
	if i < 0 {
		return
	}
	was := old.Providers[i]
	for j := range dns.Providers {
		is := &dns.Providers[j]
		if apiequality.Semantic.DeepEqual(is.Type, was.Type) && apiequality.Semantic.DeepEqual(is.SecretName, was.SecretName) &&
			apiequality.Semantic.DeepEqual(is.CredentialsRef, was.CredentialsRef) {
			is.Primary = new(true)
			return
		}
	}
}
