package core

import (
	"net/netip"
	"net/url"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidateShootStatusUpdate checks a changed status.
func ValidateShootStatusUpdate(shoot, old *corev1beta1.Shoot) field.ErrorList {
	errs := ValidateStatusMetadata(&shoot.ObjectMeta, &old.ObjectMeta)
	path, status, before := field.NewPath("status"), &shoot.Status, &old.Status
	if before.UID != "" {
		errs = append(errs, immutable(status.UID, before.UID, path.Child("uid"))...)
	}
	if before.TechnicalID != "" {
		errs = append(errs, immutable(status.TechnicalID, before.TechnicalID, path.Child("technicalID"))...)
	}
	if before.ClusterIdentity != nil && !equal(status.ClusterIdentity, before.ClusterIdentity) {
		errs = append(errs, field.Invalid(path.Child("clusterIdentity"), status.ClusterIdentity, "cannot be changed"))
	}
	errs = append(errs, advertisedAddresses(status.AdvertisedAddresses, path.Child("advertisedAddresses"))...)
	if networking := status.Networking; networking != nil {
		path := path.Child("networking")
		for _, list := range []struct {
			name  string
			cidrs []string
		}{{"pods", networking.Pods}, {"nodes", networking.Nodes}, {"services", networking.Services}, {"egressCIDRs", networking.EgressCIDRs}} {
			for i, cidr := range list.cidrs {
				prefix, err := netip.ParsePrefix(cidr)
				if err != nil || prefix != prefix.Masked() {
					errs = append(errs, field.Invalid(path.Child(list.name).Index(i), cidr, "must be a CIDR in canonical form"))
				}
			}
		}
	}
	return errs
}

func advertisedAddresses(addresses []corev1beta1.ShootAdvertisedAddress, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, address := range addresses {
		path := path.Index(i)
		if address.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		} else if names.Has(address.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), address.Name))
		}
		names.Insert(address.Name)
		parsed, err := url.Parse(address.URL)
		switch {
		case err != nil:
			errs = append(errs, field.Required(path.Child("url"), "must be a URL: "+err.Error()))
		case address.Name == "" && address.URL == "":
			// One error is enough.
		case parsed.Scheme != "https", parsed.Host == "", parsed.User != nil, parsed.RawQuery != "", parsed.Fragment != "":
			errs = append(errs, field.Invalid(path.Child("url"), address.URL, "must be a URL with the scheme https and a host, and without user, query and fragment"))
		}
	}
	return errs
}
