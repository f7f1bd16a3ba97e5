package credentials

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
)

func TestEvaluate(t *testing.T) {
	condition := func(typ certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: typ, Status: corev1.ConditionTrue, Reason: "R", Message: "M"}
	}
	approved, denied, failed := condition(certificatesv1.CertificateApproved), condition(certificatesv1.CertificateDenied), condition(certificatesv1.CertificateFailed)
	type conditions = []certificatesv1.CertificateSigningRequestCondition
	for name, tc := range map[string]struct {
		conditions       conditions
		certificate      string
		pending, refused string
	}{
		"new":                        {pending: `CertificateSigningRequest "a" is not approved yet`},
		"approved":                   {conditions: conditions{approved}, pending: `CertificateSigningRequest "a" is approved, but not signed yet`},
		"signed":                     {conditions: conditions{approved}, certificate: "signed"},
		"denied":                     {conditions: conditions{denied}, refused: `CertificateSigningRequest "a" was denied (R): M`},
		"approved, then failed":      {conditions: conditions{approved, failed}, refused: `CertificateSigningRequest "a" could not be signed (R): M`},
		"signed without an approval": {certificate: "signed", pending: `CertificateSigningRequest "a" is not approved yet`},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{}
			csr.Name, csr.Status.Conditions, csr.Status.Certificate = "a", tc.conditions, []byte(tc.certificate)
			got := evaluate(csr)
			want := tc.certificate
			if tc.pending != "" {
				want = ""
			}
			if string(got.certificate) != want || text(got.pending) != tc.pending || text(got.refused) != tc.refused {
				t.Errorf("evaluate() = %q, %v, %v", got.certificate, got.pending, got.refused)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRenewalTime(t *testing.T) {
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	certificate := Validity{NotBefore: begin, NotAfter: begin.Add(100 * time.Hour)}
	config := &gardenletconfigv1alpha1.KubeconfigValidity{AutoRotationJitterPercentageMin: new(int32(70)), AutoRotationJitterPercentageMax: new(int32(90))}
	for jitter, want := range map[float64]time.Duration{0: 70 * time.Hour, 0.5: 80 * time.Hour, 1: 90 * time.Hour} {
		if got := renewalTime(certificate, config, jitter).Sub(begin).Round(time.Second); got != want {
			t.Errorf("renewalTime(%v) is after %s, want %s", jitter, got, want)
		}
	}
}

func TestExpired(t *testing.T) {
	end := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	v := &Validity{NotAfter: end}
	if v.expired(end.Add(-time.Second)) || !v.expired(end) || (*Validity)(nil).expired(end) {
		t.Error("expired() is not true exactly from the end of a certificate")
	}
}
