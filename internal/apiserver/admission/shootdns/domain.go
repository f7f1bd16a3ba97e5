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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// defaultDomains returns the domains below which shoots get theirs, the preferred one first: those of the seed, or else those of
// the Secrets in the garden namespace.
func (p *Plugin) defaultDomains(ctx context.Context, seed *corev1beta1.Seed) ([]string, error) {
	var domains []string
	if seed != nil && len(seed.Spec.DNS.Defaults) > 0 {
		for _, d := range seed.Spec.DNS.Defaults {
			domains = append(domains, d.Domain)
		}
		return domains, nil
	}
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
	for _, secret := range secrets.Items {
		if domain := secret.Annotations[constants.DNSDomain]; domain != "" {
			domains = append(domains, domain)
		}
	}
	return domains, nil
}

// defaultFor returns the default domain that a domain is below of; "" for a domain of the user's own.
func defaultFor(domain string, defaults []string) string {
	for _, d := range defaults {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return d
		}
	}
	return ""
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

// checkDefault checks a domain below a default domain: it must contain the name of the project, so that it is not one of another
// project, and its records use the credentials of the garden, not those of a provider of the shoot.
func checkDefault(dns *corev1beta1.DNS, isNew bool, projectName, def string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "dns")
	if domain := domainOf(dns); isNew && !strings.HasSuffix(domain, "."+projectName+"."+def) {
		errs = append(errs, field.Invalid(path.Child("domain"), domain, fmt.Sprintf("below %s must be of the form NAME.%s.%s", def,
			projectName, def)))
	}
	for i, provider := range dns.Providers {
		if isPrimary(provider) {
			errs = append(errs, field.Invalid(path.Child("providers").Index(i).Child("primary"), true, "is not possible with a domain below "+def))
		}
	}
	return errs
}

func domainOf(dns *corev1beta1.DNS) string {
	if dns == nil || dns.Domain == nil {
		return ""
	}
	return *dns.Domain
}

func isPrimary(provider corev1beta1.DNSProvider) bool {
	return provider.Primary != nil && *provider.Primary
}

// unmanaged reports whether the shoot is to have no DNSRecords.
func unmanaged(dns *corev1beta1.DNS) bool {
	return dns != nil && len(dns.Providers) == 1 && dns.Providers[0].Type != nil && *dns.Providers[0].Type == constants.DNSProviderUnmanaged
}

func needsPrimary(dns *corev1beta1.DNS) bool {
	return dns != nil && len(dns.Providers) > 0 && !slices.ContainsFunc(dns.Providers, isPrimary)
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
	i := slices.IndexFunc(old.Providers, isPrimary)
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
