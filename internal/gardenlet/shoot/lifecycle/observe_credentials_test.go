package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/errorcode"
)

// What only the user can fix has a code, so that it is not retried. Credentials of the operator, and a garden that does not answer, have none.
func TestCodesOfDomainsAndCredentials(t *testing.T) {
	const configuration, unauthenticated = corev1beta1.ErrorConfigurationProblem, corev1beta1.ErrorInfraUnauthenticated
	provider := func(typ, secret string, primary bool) corev1beta1.DNSProvider {
		return corev1beta1.DNSProvider{Type: &typ, SecretName: &secret, Primary: &primary}
	}
	domain := func(name string, providers ...corev1beta1.DNSProvider) func(*corev1beta1.Shoot, *corev1beta1.Seed) {
		return func(s *corev1beta1.Shoot, _ *corev1beta1.Seed) {
			s.Spec.DNS = &corev1beta1.DNS{Domain: &name, Providers: providers}
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *corev1beta1.Seed)
		// silent says that the garden does not answer.
		silent bool
		// want is the provider of the external domain.
		want  string
		codes []corev1beta1.ErrorCode
		fails bool
	}{
		"a default domain":                {change: domain("a.dev.example.com"), want: "local"},
		"a domain of its own":             {change: domain("example.org", provider("cloud", "creds", true)), want: "cloud"},
		"a domain that is not managed":    {change: domain("example.org", provider("unmanaged", "", true)), want: "unmanaged"},
		"a domain that no provider has":   {change: domain("example.org"), fails: true, codes: []corev1beta1.ErrorCode{configuration}},
		"a domain without a primary one":  {change: domain("example.org", provider("cloud", "creds", false)), fails: true, codes: []corev1beta1.ErrorCode{configuration}},
		"a provider without a type":       {change: domain("example.org", provider("", "", true)), fails: true, codes: []corev1beta1.ErrorCode{configuration}},
		"missing credentials of a domain": {change: domain("example.org", provider("cloud", "gone", true)), fails: true, codes: []corev1beta1.ErrorCode{configuration}},
		"a domain that no provider has, deleted": {change: func(s *corev1beta1.Shoot, seed *corev1beta1.Seed) {
			domain("example.org")(s, seed)
			s.DeletionTimestamp = new(metav1.NewTime(time.Now()))
		}, want: "unmanaged"},
		"missing credentials of the operator": {change: func(_ *corev1beta1.Shoot, seed *corev1beta1.Seed) {
			seed.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{
				Type: "local", Domain: "internal.example.com", CredentialsRef: corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: "gone"},
			}
		}, fails: true},
		"bound credentials":                 {change: func(s *corev1beta1.Shoot, _ *corev1beta1.Seed) { s.Spec.CredentialsBindingName = new("bound") }},
		"missing credentials":               {change: func(s *corev1beta1.Shoot, _ *corev1beta1.Seed) { s.Spec.CredentialsBindingName = new("empty") }, fails: true, codes: []corev1beta1.ErrorCode{unauthenticated}},
		"a missing CredentialsBinding":      {change: func(s *corev1beta1.Shoot, _ *corev1beta1.Seed) { s.Spec.CredentialsBindingName = new("gone") }, fails: true, codes: []corev1beta1.ErrorCode{configuration}},
		"a missing SecretBinding":           {change: func(s *corev1beta1.Shoot, _ *corev1beta1.Seed) { s.Spec.SecretBindingName = new("gone") }, fails: true, codes: []corev1beta1.ErrorCode{configuration}},
		"credentials, and a silent garden":  {change: func(s *corev1beta1.Shoot, _ *corev1beta1.Seed) { s.Spec.CredentialsBindingName = new("bound") }, silent: true, fails: true},
		"a domain, and a garden that stops": {change: domain("example.org", provider("cloud", "creds", true)), silent: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Seed.Name = "s"
			tc.change(o.Shoot, o.Seed)
			inProject := func(name string) metav1.ObjectMeta {
				return metav1.ObjectMeta{Namespace: o.Shoot.Namespace, Name: name}
			}
			binding := func(name, secret string) client.Object {
				return &securityv1alpha1.CredentialsBinding{
					ObjectMeta: inProject(name), CredentialsRef: corev1.ObjectReference{Kind: "Secret", Namespace: o.Shoot.Namespace, Name: secret},
				}
			}
			garden := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(
				&corev1.Secret{ObjectMeta: inProject("creds")}, binding("bound", "creds"), binding("empty", "gone"),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					Namespace: "seed-s", Name: "default", Labels: map[string]string{constants.GardenRole: constants.GardenRoleDefaultDomain},
					Annotations: map[string]string{constants.DNSProvider: "local", constants.DNSDomain: "example.com"},
				}},
			).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if tc.silent {
						return errors.New("no answer")
					}
					return c.Get(ctx, key, obj, opts...)
				},
			}).Build()
			r := observer{gardenAPI: garden}
			_, external, err := r.domains(t.Context(), o)
			_, credentialsErr := r.cloudProvider(t.Context(), o.Shoot)
			err = errors.Join(err, credentialsErr)
			if (err != nil) != tc.fails {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(tc.codes, errorcode.Of(err)); diff != "" {
				t.Errorf("codes (-want +got), of %v:\n%s", err, diff)
			}
			if tc.want != "" && (external == nil || external.Provider != tc.want) {
				t.Errorf("the external domain is %+v, want one of provider %q", external, tc.want)
			}
		})
	}
}
