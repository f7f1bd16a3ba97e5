package internaldomain

import (
	"context"
	"errors"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

func TestHandle(t *testing.T) {
	secret := func(namespace, domain string, change ...func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "internal", Labels: map[string]string{"gardener.cloud/role": "internal-domain"},
			Annotations: map[string]string{"dns.gardener.cloud/domain": domain, "dns.gardener.cloud/provider": "local"},
		}}
		for _, c := range change {
			c(s)
		}
		return s
	}
	other := func(s *corev1.Secret) { s.Name = "other" }
	unlabelled := func(s *corev1.Secret) { s.Labels = map[string]string{"role": "internal-domain"} }
	without := func(annotation string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { delete(s.Annotations, annotation) }
	}
	noDomain, noProvider := without("dns.gardener.cloud/domain"), without("dns.gardener.cloud/provider")
	shoot := func(seed *string) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "s"}, Spec: corev1beta1.ShootSpec{SeedName: seed}}
	}
	const garden, seed = "garden", "seed-a"
	const conflict, forbidden, failed = http.StatusConflict, http.StatusForbidden, http.StatusInternalServerError
	create := func(object client.Object) admission.Request { return webhooktest.Create(t, "secrets", object) }
	update := func(object, old client.Object) admission.Request {
		return webhooktest.Update(t, "secrets", object, old)
	}
	deletion := func(old client.Object) admission.Request { return webhooktest.Delete(t, "secrets", old) }
	for name, tc := range map[string]struct {
		request admission.Request
		exist   []client.Object
		fails   string // what cannot be listed
		code    int
		message string
	}{
		"create: first":                             {create(secret(garden, "a")), nil, "", webhooktest.Allowed, ""},
		"create: another":                           {create(secret(garden, "a")), []client.Object{secret(garden, "b", other)}, "", conflict, `"other"`},
		"create: another elsewhere":                 {create(secret(garden, "a")), []client.Object{secret(seed, "b", other)}, "", webhooktest.Allowed, ""},
		"create: another without the label":         {create(secret(garden, "a")), []client.Object{secret(garden, "b", other, unlabelled)}, "", webhooktest.Allowed, ""},
		"create: list fails":                        {create(secret(garden, "a")), nil, "Secrets", failed, "list Secrets"},
		"create: without a domain":                  {create(secret(garden, "", noDomain)), nil, "", http.StatusBadRequest, "dns.gardener.cloud/domain"},
		"create: without a provider":                {create(secret(garden, "a", noProvider)), nil, "", http.StatusBadRequest, "dns.gardener.cloud/provider"},
		"create: for a seed":                        {create(secret(seed, "a")), nil, "", webhooktest.Allowed, ""},
		"create: another for the seed":              {create(secret(seed, "a")), []client.Object{secret(seed, "b", other)}, "", conflict, `"other"`},
		"create: in another namespace":              {create(secret("garden-p", "", noDomain)), []client.Object{secret("garden-p", "b", other)}, "", webhooktest.Allowed, ""},
		"update: nothing":                           {update(secret(garden, "a"), secret(garden, "a")), []client.Object{secret(garden, "a"), shoot(nil)}, "", webhooktest.Allowed, ""},
		"update: new label":                         {update(secret(garden, "a"), secret(garden, "a", unlabelled)), []client.Object{secret(garden, "a", unlabelled)}, "", webhooktest.Allowed, ""},
		"update: new label on another":              {update(secret(garden, "a"), secret(garden, "a", unlabelled)), []client.Object{secret(garden, "b", other)}, "", conflict, `"other"`},
		"update: new label, list fails":             {update(secret(garden, "a"), secret(garden, "a", unlabelled)), nil, "Secrets", failed, "list Secrets"},
		"update: without a domain":                  {update(secret(garden, "", noDomain), secret(garden, "a")), nil, "", failed, "dns.gardener.cloud/domain"},
		"update: had no domain":                     {update(secret(garden, "a"), secret(garden, "a", noDomain)), nil, "", failed, "dns.gardener.cloud/domain"},
		"update: domain":                            {update(secret(garden, "b"), secret(garden, "a")), nil, "", webhooktest.Allowed, ""},
		"update: domain with Shoots":                {update(secret(garden, "b"), secret(garden, "a")), []client.Object{shoot(nil)}, "", forbidden, "another domain"},
		"update: domain, list fails":                {update(secret(garden, "b"), secret(garden, "a")), nil, "Shoots", failed, "list Shoots"},
		"update: domain of a seed":                  {update(secret(seed, "b"), secret(seed, "a")), []client.Object{shoot(new("b"))}, "", webhooktest.Allowed, ""},
		"update: domain of a seed with Shoots":      {update(secret(seed, "b"), secret(seed, "a")), []client.Object{shoot(new("a"))}, "", forbidden, "another domain"},
		"update: label away, domain with Shoots":    {update(secret(garden, "b", unlabelled), secret(garden, "a")), []client.Object{shoot(nil)}, "", forbidden, "another domain"},
		"update: not decodable":                     {update(nil, secret(garden, "a")), nil, "", http.StatusBadRequest, ""},
		"delete: without Shoots":                    {deletion(secret(garden, "a")), nil, "", webhooktest.Allowed, ""},
		"delete: with Shoots":                       {deletion(secret(garden, "a")), []client.Object{shoot(nil)}, "", forbidden, "deleted"},
		"delete: list fails":                        {deletion(secret(garden, "a")), nil, "Shoots", failed, "list Shoots"},
		"delete: of a seed with Shoots":             {deletion(secret(seed, "a")), []client.Object{shoot(new("a"))}, "", forbidden, "deleted"},
		"delete: of a seed, Shoots of another":      {deletion(secret(seed, "a")), []client.Object{shoot(new("b"))}, "", webhooktest.Allowed, ""},
		"delete: in another namespace, with Shoots": {deletion(secret("garden-p", "a")), []client.Object{shoot(nil)}, "", webhooktest.Allowed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reader := webhooktest.Garden(t, tc.exist...).WithIndex(&corev1beta1.Shoot{}, "spec.seedName", func(obj client.Object) []string {
				if seed := obj.(*corev1beta1.Shoot).Spec.SeedName; seed != nil {
					return []string{*seed}
				}
				return nil
			}).WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, ok := list.(*corev1beta1.ShootList); tc.fails == "Shoots" && ok || tc.fails == "Secrets" && !ok {
					return errors.New("unreachable")
				}
				return c.List(ctx, list, options...)
			}}).Build()
			h := &Handler{Reader: reader, Decoder: webhooktest.Decoder(t)}
			webhooktest.Expect(t, h.Handle(t.Context(), tc.request), tc.code, tc.message)
		})
	}
	t.Run("another operation", func(t *testing.T) {
		request := create(secret(garden, "a"))
		request.Operation = admissionv1.Connect
		webhooktest.Expect(t, (&Handler{}).Handle(t.Context(), request), webhooktest.Allowed)
	})
}
