package admissioncontroller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	project = "garden-webhooks"
	// program is a kubeconfig that runs a program.
	program = "users: [{name: a, user: {token: secret-token, exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}}]"
	policy  = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: "
)

// TestWebhooks has the webhooks called by a kube-apiserver, with the webhook configurations of a landscape.
func TestWebhooks(t *testing.T) {
	limits := &admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{Limits: []admissioncontrollerconfigv1alpha1.ResourceLimit{
		{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"limitranges"}, Size: new(resource.MustParse("1Ki"))},
		{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"*"}, Resources: []string{"projects"}, Count: new(int64(1))},
	}}
	e := env.Start(t, env.Lenient(), env.WithAdmissionController(func(c *admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration) {
		c.Server.ResourceAdmissionConfiguration = limits
	}))
	c := e.Client
	create(
		t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: project, Labels: map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "webhooks"},
		}},
		builder.CloudProfile("local"), &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "webhooks"}, Spec: corev1beta1.ProjectSpec{Namespace: new(project)}},
		&corev1beta1.SecretBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "credentials"}, Provider: &corev1beta1.SecretBindingProvider{Type: "local"},
			SecretRef: corev1.SecretReference{Namespace: project, Name: "credentials"},
		},
	)
	create(t, c, gardeneradmissioncontroller.Webhooks(e.Webhooks(), limits)...)

	step := env.Story(t)
	step("the kube-apiserver calls them")
	env.AwaitRequest(t, func(ctx context.Context) error {
		err := c.Create(ctx, secret(project, "program", nil, map[string]string{"kubeconfig": program}), client.DryRunAll)
		return refused(err, http.StatusUnprocessableEntity, "data.kubeconfig.users[0].user.exec")
	})
	env.AwaitRequest(t, func(ctx context.Context) error {
		credentials := secret(project, "credentials", map[string]string{"provider.shoot.gardener.cloud/old": "true"}, nil)
		if err := c.Create(ctx, credentials, client.DryRunAll); err != nil {
			return err
		}
		if want := map[string]string{"provider.shoot.gardener.cloud/local": "true"}; !maps.Equal(want, credentials.Labels) {
			return fmt.Errorf("labels are %v, want %v", credentials.Labels, want)
		}
		return nil
	})

	step("what is valid is created")
	create(
		t, c, secret(project, "kubeconfig", nil, map[string]string{"kubeconfig": "users: [{name: a, user: {token: secret-token}}]"}),
		secret("default", "program", nil, map[string]string{"kubeconfig": program}), // no project
		secret("garden", "internal", internalDomain, nil, "example.com"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "policy"}, Data: map[string]string{"policy": policy + "Metadata"}},
		shoot("webhooks"),
	)

	step("what is not is refused")
	// The gardener-admission-controller lists Shoots in its cache.
	env.AwaitRequest(t, func(ctx context.Context) error {
		old := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: project, Name: "kubeconfig"}, old); err != nil {
			return err
		}
		old.Data = nil
		return refused(c.Update(ctx, old, client.DryRunAll), http.StatusForbidden, "kube-apiservers of Shoots use it: webhooks")
	})
	for name, tc := range map[string]struct {
		do      func(ctx context.Context) error
		code    int
		message string
	}{
		"audit policy of a Shoot": {func(ctx context.Context) error {
			return c.Create(ctx, shoot("another", func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.AuditConfig.AuditPolicy.ConfigMapRef.Name = "missing"
			}))
		}, http.StatusUnprocessableEntity, "audit-policies.gardener.cloud"},
		"structured authentication of a Shoot": {func(ctx context.Context) error {
			return c.Create(ctx, shoot("another", func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication = &corev1beta1.StructuredAuthentication{ConfigMapName: "policy"}
			}))
		}, http.StatusUnprocessableEntity, "authentication-configuration.gardener.cloud"},
		"structured authorization of a Shoot": {func(ctx context.Context) error {
			return c.Create(ctx, shoot("another", func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.KubeAPIServer.StructuredAuthorization = &corev1beta1.StructuredAuthorization{
					ConfigMapName: "policy", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: "kubeconfig"}},
				}
			}))
		}, http.StatusUnprocessableEntity, "authorization-configuration.gardener.cloud"},
		"audit policy in a ConfigMap": {change(c, project, "policy", func(m *corev1.ConfigMap) { m.Data["policy"] = policy + "All" }), http.StatusUnprocessableEntity, "data[policy].rules[0].level"},
		"deletion of the Namespace of a Project": {func(ctx context.Context) error {
			return c.Delete(ctx, env.Named[*corev1.Namespace]("", project))
		}, http.StatusForbidden, `delete Project "webhooks"`},
		// Each of these was never called in the original, which selects another label.
		"second internal domain": {func(ctx context.Context) error {
			return c.Create(ctx, secret("garden", "second", internalDomain, nil, "example.org"))
		}, http.StatusConflict, `"internal" has the internal domain already`},
		"another internal domain": {change(c, "garden", "internal", func(s *corev1.Secret) { s.Annotations["dns.gardener.cloud/domain"] = "example.org" }), http.StatusForbidden, "internal-domain-secret.gardener.cloud"},
		"another internal domain without the label": {change(c, "garden", "internal", func(s *corev1.Secret) {
			s.Labels, s.Annotations["dns.gardener.cloud/domain"] = nil, "example.org"
		}), http.StatusForbidden, "internal-domain-secret.gardener.cloud"},
		"no internal domain": {func(ctx context.Context) error {
			return c.Delete(ctx, env.Named[*corev1.Secret]("garden", "internal"))
		}, http.StatusForbidden, "must not be deleted"},
		"what gardenlets publish": {func(ctx context.Context) error {
			return c.Create(ctx, secret(project, "forged", map[string]string{"gardener.cloud/update-restriction": "true"}, nil))
		}, http.StatusForbidden, "update-restriction.gardener.cloud"},
		"large object": {func(ctx context.Context) error {
			return c.Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "large", Annotations: map[string]string{"a": strings.Repeat("x", 1024)}}})
		}, http.StatusForbidden, "no more than 1024"},
		"one object too many": {func(ctx context.Context) error {
			return c.Create(ctx, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-second")}})
		}, http.StatusForbidden, "no more than 1 objects of kind Project"},
	} {
		if err := refused(tc.do(t.Context()), tc.code, tc.message); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	step("what they do not concern does not depend on them")
	e.StopAdmissionController()
	create(
		t, c, secret("default", "while-down", nil, map[string]string{"kubeconfig": program}), secret("kube-system", "while-down", nil, nil), secret("garden", "while-down", nil, nil),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "while-down"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "while-down"}},
		shoot("while-down", func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.KubeAPIServer = nil }),
	)
	for name, do := range map[string]func(ctx context.Context) error{
		"Secret with a kubeconfig": func(ctx context.Context) error {
			return c.Create(ctx, secret(project, "down", nil, map[string]string{"kubeconfig": ""}))
		},
		"Shoot with an audit policy": func(ctx context.Context) error { return c.Create(ctx, shoot("down")) },
	} {
		if err := do(t.Context()); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("%s: %v, want that the webhook cannot be called", name, err)
		}
	}
	e.StartAdmissionController(t)
	env.AwaitRequest(t, func(ctx context.Context) error { return c.Create(ctx, shoot("up-again")) })
}

var internalDomain = map[string]string{"gardener.cloud/role": "internal-domain"}

// secret is a Secret, with a domain of the provider "local" if one is given.
func secret(namespace, name string, labels, data map[string]string, domain ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, StringData: data}
	for _, domain := range domain {
		s.Annotations = map[string]string{"dns.gardener.cloud/domain": domain, "dns.gardener.cloud/provider": "local"}
	}
	return s
}

// shoot is a Shoot with the audit policy in the ConfigMap "policy", and an admission plugin with the Secret "kubeconfig".
func shoot(name string, changes ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	return builder.Shoot(name, append([]func(*corev1beta1.Shoot){builder.In(project), func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			AuditConfig:      &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "policy"}}},
			AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: new("kubeconfig")}},
		}
	}}, changes...)...)
}

// change updates an object.
func change[T any, P interface {
	*T
	client.Object
}](c client.Client, namespace, name string, change func(P)) func(context.Context) error {
	return func(ctx context.Context) error {
		object := P(new(T))
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return err
		}
		change(object)
		return c.Update(ctx, object)
	}
}

// refused returns an error unless a request was refused, with a code and a text, and without values of Secrets.
func refused(err error, code int, text string) error {
	status := apierrors.APIStatus(nil)
	switch {
	case !errors.As(err, &status):
		return fmt.Errorf("the request is not refused: %w", err)
	case int(status.Status().Code) != code || !strings.Contains(err.Error(), text):
		return fmt.Errorf("the error has code %d and is %w, want code %d and %q", status.Status().Code, err, code, text)
	case strings.Contains(err.Error(), "secret-token"):
		return fmt.Errorf("the error has a value of a Secret: %w", err)
	}
	return nil
}
