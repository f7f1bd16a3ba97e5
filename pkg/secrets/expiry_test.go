package secrets

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpiringCAs(t *testing.T) {
	now := time.Date(2035, 12, 1, 3, 0, 0, 0, time.UTC)
	soon, late := now.Add(CAExpiryWarning-time.Second), now.Add(CAExpiryWarning)
	secret := func(name string, until time.Time, more ...string) metav1.PartialObjectMetadata {
		labels := map[string]string{LabelKeyName: name, LabelKeyValidUntilTime: strconv.FormatInt(until.Unix(), 10)}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	for name, tc := range map[string]struct {
		secrets []metav1.PartialObjectMetadata
		want    []Expiry
	}{
		"none":                       {},
		"within a year":              {secrets: []metav1.PartialObjectMetadata{secret("ca", soon)}, want: []Expiry{{"ca", soon}}},
		"in a year":                  {secrets: []metav1.PartialObjectMetadata{secret("ca", late)}},
		"expired":                    {secrets: []metav1.PartialObjectMetadata{secret("ca", now.Add(-time.Hour))}, want: []Expiry{{"ca", now.Add(-time.Hour)}}},
		"the old one of a rotation":  {secrets: []metav1.PartialObjectMetadata{secret("ca", soon), secret("ca", now.AddDate(10, 0, 0))}, want: []Expiry{{"ca", soon}}},
		"a bundle":                   {secrets: []metav1.PartialObjectMetadata{secret("ca-bundle", soon, LabelKeyBundleFor, "ca")}},
		"no CA":                      {secrets: []metav1.PartialObjectMetadata{secret("kube-apiserver", soon), secret("cash", soon)}},
		"it does not say until when": {secrets: []metav1.PartialObjectMetadata{secret("ca", soon, LabelKeyValidUntilTime, "")}},
		"several, in whatever order": {
			secrets: []metav1.PartialObjectMetadata{secret("ca-etcd", now), secret("ca", soon), secret("ca", now)},
			want:    []Expiry{{"ca", now}, {"ca", soon}, {"ca-etcd", now}},
		},
		"without labels": {secrets: []metav1.PartialObjectMetadata{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ExpiringCAs(tc.secrets, now)); diff != "" {
				t.Errorf("ExpiringCAs() (-want +got):\n%s", diff)
			}
		})
	}
}
