package apiserverfiles

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
)

func authenticationChanged(shoot, old *corev1beta1.Shoot) bool {
	return issuer.Managed(shoot) != issuer.Managed(old) || setsAnonymous(shoot) && !setsAnonymous(old) || !issuers(shoot).Equal(issuers(old))
}

// checkAuthentication checks a file for all shoots in one go, as its expressions take a while to compile: it must not name the issuers of any, and
// must be valid for the oldest version of Kubernetes.
func checkAuthentication(ctx context.Context, gardenAPI client.Reader, text string, shoots []*corev1beta1.Shoot) (field.ErrorList, error) {
	disallowed, err := managedIssuers(ctx, gardenAPI, shoots)
	if err != nil {
		return nil, err
	}
	var oldest *version.Version
	var anonymous, workerless []string
	for _, shoot := range shoots {
		disallowed = disallowed.Union(issuers(shoot))
		kubernetes, err := version.ParseGeneric(shoot.Spec.Kubernetes.Version)
		if err != nil {
			return nil, fmt.Errorf("read the version of Kubernetes of Shoot %q: %w", shoot.Name, err)
		}
		if oldest == nil || kubernetes.LessThan(oldest) {
			oldest = kubernetes
		}
		if setsAnonymous(shoot) {
			anonymous = append(anonymous, shoot.Name)
		}
		if shoot.Workerless() {
			workerless = append(workerless, shoot.Name)
		}
	}
	errs := apiserverconfig.Authentication(text, oldest, sets.List(disallowed))
	if len(anonymous) > 0 && apiserverconfig.ConfiguresAnonymous(text) {
		slices.Sort(anonymous)
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"), "excludes enableAnonymousAuthentication, which is set in Shoots: "+strings.Join(anonymous, ", ")))
	}
	if len(workerless) > 0 && apiserverconfig.SelectsEgress(text) {
		slices.Sort(workerless)
		errs = append(errs, field.Forbidden(field.NewPath("jwt"), "egressSelectorType needs nodes, which these Shoots do not have: "+strings.Join(workerless, ", ")))
	}
	return errs, nil
}

// setsAnonymous reports whether the Shoot itself says whether requests without credentials are allowed.
func setsAnonymous(shoot *corev1beta1.Shoot) bool {
	c := shoot.Spec.Kubernetes.KubeAPIServer
	return c != nil && c.EnableAnonymousAuthentication != nil //nolint:staticcheck // in use up to Kubernetes 1.34
}

// issuers returns the issuers of service account tokens that the Shoot names.
func issuers(shoot *corev1beta1.Shoot) sets.Set[string] {
	all := sets.New[string]()
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.ServiceAccountConfig != nil {
		if c.ServiceAccountConfig.Issuer != nil {
			all.Insert(*c.ServiceAccountConfig.Issuer)
		}
		all.Insert(c.ServiceAccountConfig.AcceptedIssuers...)
	}
	for _, address := range shoot.Status.AdvertisedAddresses {
		switch address.Name {
		case constants.AdvertisedAddressServiceAccountIssuer, constants.AdvertisedAddressInternal, constants.AdvertisedAddressExternal:
			all.Insert(address.URL)
		}
	}
	return all
}

// managedIssuers returns the managed issuers of those of the shoots that ask for one, which are in the same project. The status names it only
// after the first reconciliation.
func managedIssuers(ctx context.Context, gardenAPI client.Reader, shoots []*corev1beta1.Shoot) (sets.Set[string], error) {
	shoots = slices.DeleteFunc(slices.Clone(shoots), func(shoot *corev1beta1.Shoot) bool { return !issuer.Managed(shoot) || shoot.UID == "" })
	if len(shoots) == 0 {
		return nil, nil
	}
	secrets := &corev1.SecretList{}
	if err := gardenAPI.List(ctx, secrets, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer,
	}); err != nil {
		return nil, fmt.Errorf("read the host of managed issuers: %w", err)
	}
	if len(secrets.Items) == 0 {
		return nil, nil
	}
	namespace := &corev1.Namespace{}
	if err := gardenAPI.Get(ctx, client.ObjectKey{Name: shoots[0].Namespace}, namespace); err != nil {
		return nil, fmt.Errorf("read Namespace %q: %w", shoots[0].Namespace, err)
	}
	host, project := string(secrets.Items[0].Data[issuer.HostnameKey]), namespace.Labels[constants.ProjectName]
	if host == "" || project == "" {
		return nil, nil
	}
	all := sets.New[string]()
	for _, shoot := range shoots {
		all.Insert(issuer.URL(host, project, shoot.UID))
	}
	return all, nil
}
