package lifecycle

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryReferenceOfTheAPIServerIsRead(t *testing.T) {
	type references struct {
		Audit          corev1beta1.AuditPolicy              `json:"audit"`
		Authentication corev1beta1.StructuredAuthentication `json:"authentication"`
		Authorization  corev1beta1.StructuredAuthorization  `json:"authorization"`
		Plugin         corev1beta1.AdmissionPlugin          `json:"plugin"`
	}
	const other, component = "it is a ConfigMap of the project, and its name says which", "the component's"
	everyfield.Run(t, everyfield.Suite[references]{
		Base: func() *references {
			return &references{
				Audit:          corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "some"}},
				Authentication: corev1beta1.StructuredAuthentication{ConfigMapName: "some"},
				Authorization: corev1beta1.StructuredAuthorization{
					ConfigMapName: "some", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "some", SecretName: "some"}},
				},
				Plugin: corev1beta1.AdmissionPlugin{Name: "some", KubeconfigSecretName: new("some")},
			}
		},
		Render: func(t *testing.T, r *references) string {
			garden := fake.NewClientBuilder()
			for _, name := range []string{"some", "other"} {
				meta := metav1.ObjectMeta{Namespace: "garden-dev", Name: name}
				garden.WithObjects(
					&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{auditPolicyKey: name, configKey: name}},
					&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{kubeconfigKey: []byte(name)}},
				)
			}
			shoot := observedtest.State().Shoot
			shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
				AuditConfig: &corev1beta1.AuditConfig{AuditPolicy: &r.Audit}, AdmissionPlugins: []corev1beta1.AdmissionPlugin{r.Plugin},
				StructuredAuthentication: &r.Authentication, StructuredAuthorization: &r.Authorization,
			}
			files, err := apiServerFiles(t.Context(), garden.Build(), shoot)
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.Marshal(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		Exceptions: map[string]string{
			"audit.configMapRef.kind": other, "audit.configMapRef.namespace": other, "audit.configMapRef.uid": other, "audit.configMapRef.apiVersion": other,
			"audit.configMapRef.resourceVersion": other, "audit.configMapRef.fieldPath": other,
			"plugin.config": component, "plugin.disabled": component,
		},
	})
}

// A kube-apiserver is not changed when an object that its Shoot refers to becomes invalid, and the error says what the owner has to fix.
func TestInvalidFilesDoNotChangeTheAPIServer(t *testing.T) {
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	const kubeconfig = "clusters: [{name: a, cluster: {server: 'https://a.example'}}]\nusers: [{name: a, user: {token: x}}]\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
	l, o := newLandscape(t), observedtest.State()
	o.Shoot.Spec.Kubernetes.Version = "1.36.3"
	o.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AuditConfig:      &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "policy"}}},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("webhook")}},
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Shoot.Namespace, Name: "policy"}, Data: map[string]string{auditPolicyKey: policy}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Shoot.Namespace, Name: "webhook"}, Data: map[string][]byte{kubeconfigKey: []byte(kubeconfig)}}
	for _, object := range []client.Object{configMap, secret} {
		if err := l.garden.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := begin(t, l, o)
	deployment := func() *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		if err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: kubeapiserver.Name}, d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := deployment()

	for name, tc := range map[string]struct{ policy, kubeconfig, want string }{
		"audit policy": {strings.Replace(policy, "Metadata", "All", 1), kubeconfig, "audit policy: rules[0].level"},
		"kubeconfig":   {policy, strings.Replace(kubeconfig, "token: x", "exec: {command: x}", 1), "admission plugin ImagePolicyWebhook: kubeconfig: users[0].user.exec"},
	} {
		t.Run(name, func(t *testing.T) {
			configMap.Data[auditPolicyKey], secret.Data[kubeconfigKey] = tc.policy, []byte(tc.kubeconfig)
			for _, object := range []client.Object{configMap, secret} {
				if err := l.garden.Update(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			err := apiserver.Deploy(s.apiserver, 1)(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if diff := cmp.Diff([]corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}, errorcode.Of(err)); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, deployment()); diff != "" {
				t.Errorf("the Deployment has changed:\n%s", diff)
			}
		})
	}
}

// A Shoot can be deleted without the objects that it refers to: its kube-apiserver is deployed without them. An error that passes is retried.
func TestInvalidFilesDoNotPreventTheDeletion(t *testing.T) {
	l, o := newLandscape(t), observedtest.State()
	o.Shoot.Spec.Kubernetes.Version = "1.36.3"
	o.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AuditConfig: &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "policy"}}},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{
			{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("webhook")}, {Name: "ResourceQuota", Disabled: new(true)}, {Name: "AlwaysPullImages"},
		},
	}
	flags := func() string {
		d := &appsv1.Deployment{}
		if err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: kubeapiserver.Name}, d); err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(d.Spec.Template.Spec.Containers[0].Command, d.Spec.Template.Spec.Containers[0].Args...), " ")
	}
	meta := metav1.ObjectMeta{Namespace: o.Shoot.Namespace, Name: "policy"}
	for name, policy := range map[string]*corev1.ConfigMap{
		"missing": nil, "without the key": {ObjectMeta: meta}, "invalid": {ObjectMeta: meta, Data: map[string]string{auditPolicyKey: "rules: ["}},
	} {
		t.Run(name, func(t *testing.T) {
			if policy != nil {
				if err := l.garden.Create(t.Context(), policy); err != nil {
					t.Fatal(err)
				}
				defer l.garden.Delete(t.Context(), policy) //nolint:errcheck // the next case fails
			}
			o.Shoot.DeletionTimestamp = nil
			s := l.stages(o, kindRunning)
			for _, step := range []func(context.Context) error{s.foundation.Credentials.Open, s.foundation.Credentials.Etcd, s.foundation.Credentials.Rest} {
				if err := step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := apiserver.Deploy(s.apiserver, 1)(t.Context()); err == nil {
				t.Error("the kube-apiserver of a shoot that is not deleted is deployed without its configuration")
			}
			o.Shoot.DeletionTimestamp = new(metav1.Now())
			begin(t, l, o)
			got := flags()
			if strings.Contains(got, "audit-log-path") || strings.Contains(got, "ImagePolicyWebhook") || !strings.Contains(got, "--disable-admission-plugins=ResourceQuota") {
				t.Errorf("flags: %s", got)
			}
			if !strings.Contains(got, "AlwaysPullImages") {
				t.Errorf("what is valid is dropped as well: %s", got)
			}
		})
	}
	t.Run("another one is valid", func(t *testing.T) {
		valid := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{auditPolicyKey: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"}}
		if err := l.garden.Create(t.Context(), valid); err != nil {
			t.Fatal(err)
		}
		begin(t, l, o)
		if got := flags(); !strings.Contains(got, "audit-log-path") || strings.Contains(got, "ImagePolicyWebhook") {
			t.Errorf("flags: %s", got)
		}
	})
	unavailable := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewServiceUnavailable("later")
		},
	})
	if _, err := apiServerFiles(t.Context(), unavailable, o.Shoot); err == nil || usersFault(err) {
		t.Errorf("an error that passes is one of the user: %v", err)
	}
}
