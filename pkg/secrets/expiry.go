package secrets

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// CAExpiryWarning is how long before its end a CA that only people rotate is reported: clients may take months to get the new one.
	CAExpiryWarning = 365 * 24 * time.Hour
	// caName is the name of a CA, or with a dash the beginning of it.
	caName = "ca"
)

// Expiry says until when a CA is valid.
type Expiry struct {
	// Name is that of the CA in the secrets manager.
	Name string
	// Until is the end, in UTC.
	Until time.Time
}

// ExpiringCAs returns those CAs among secrets of a secrets manager, of which it takes the metadata, that expire within CAExpiryWarning, sorted by name. Other
// credentials, bundles and secrets that do not say until when they are valid are left out.
func ExpiringCAs(secrets []metav1.PartialObjectMetadata, now time.Time) []Expiry {
	var expiring []Expiry
	for i := range secrets {
		name, until := secrets[i].Labels[LabelKeyName], timeLabel(&secrets[i], LabelKeyValidUntilTime)
		if name != caName && !strings.HasPrefix(name, caName+"-") || secrets[i].Labels[LabelKeyBundleFor] != "" || until.IsZero() {
			continue
		}
		if until.Sub(now) < CAExpiryWarning {
			expiring = append(expiring, Expiry{Name: name, Until: until})
		}
	}
	slices.SortFunc(expiring, func(a, b Expiry) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.Until.Compare(b.Until)) })
	return expiring
}
