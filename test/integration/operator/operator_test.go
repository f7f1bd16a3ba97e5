package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/operator"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// runtime is a client of the runtime cluster, which is the virtual garden too: what a Garden deploys is not what this test is about.
type runtime struct {
	client.WithWatch
	e *env.Env
}

func start(t *testing.T) *runtime {
	t.Helper()
	e := env.Start(t, env.Lenient())
	if err := errors.Join(
		operatorv1alpha1.AddToScheme(e.Scheme), apiextensionsv1.AddToScheme(e.Scheme), resourcesv1alpha1.AddToScheme(e.Scheme), druidv1alpha1.AddToScheme(e.Scheme),
		extensionsv1alpha1.AddToScheme(e.Scheme),
	); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	r := &runtime{c, e}
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	r.run(t)
	return r
}

// run runs the process until the test ends, and waits until its webhooks are called.
func (r *runtime) run(t *testing.T) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := r.e.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	free := ports.Free(t, 3)
	config := &operatorconfigv1alpha1.OperatorConfiguration{}
	config.RuntimeClientConnection.Kubeconfig = kubeconfig
	config.Server.Webhooks = operatorconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[0]}
	config.Server.HealthProbes = &operatorconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[1]}
	config.Server.Metrics = &operatorconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[2]}
	config.Controllers.GardenCare.SyncPeriod = &metav1.Duration{Duration: time.Second}
	operatorconfigv1alpha1.SetDefaults(config)
	t.Setenv(operator.WebhookModeEnv, "url")
	t.Setenv(operator.WebhookURLEnv, net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0])))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Component().Run(ctx, config, testr.New(t)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !t.Failed() {
			t.Errorf("gardener-operator: %v", err)
		}
	})
	env.Await(t, r, env.Named[*admissionregistrationv1.MutatingWebhookConfiguration]("", operator.Name), env.Exists)
	env.Await(t, r, env.Named[*admissionregistrationv1.ValidatingWebhookConfiguration]("", operator.Name), env.Exists)
}

// newGarden returns the Garden in the test data of its validation, as a user would write it.
func newGarden(t *testing.T, changes ...func(*operatorv1alpha1.Garden)) *operatorv1alpha1.Garden {
	t.Helper()
	data, err := os.ReadFile("../../../internal/validation/operator/testdata/garden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	garden := &operatorv1alpha1.Garden{}
	if err := yaml.UnmarshalStrict(data, garden); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(garden)
	}
	return garden
}

// refused checks that a request is refused for a reason, with a message that has some texts.
func refused(t *testing.T, err error, is func(error) bool, texts ...string) {
	t.Helper()
	if !is(err) {
		t.Errorf("got error %v", err)
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want one with %q", err, text)
		}
	}
}

func has[T client.Object](finalizer string) func(T) error {
	return func(obj T) error {
		if !slices.Contains(obj.GetFinalizers(), finalizer) {
			return fmt.Errorf("its finalizers are %v", obj.GetFinalizers())
		}
		return nil
	}
}

func TestGarden(t *testing.T) {
	r := start(t)
	for _, name := range []string{"dns", "backup", "other"} {
		if err := r.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	step := env.Story(t)

	step("an invalid Garden is refused, with the path of each field")
	err := r.Create(t.Context(), newGarden(t, func(g *operatorv1alpha1.Garden) {
		g.Finalizers = []string{operatorv1alpha1.FinalizerName}
		g.Spec.DNS.Providers = append(g.Spec.DNS.Providers, g.Spec.DNS.Providers[0])
		g.Spec.Extensions = []operatorv1alpha1.GardenExtension{{Type: "unknown"}}
		g.Spec.RuntimeCluster.Networking.Pods = []string{"10.2.0.0/16"}
	}))
	refused(t, err, apierrors.IsInvalid, "metadata.finalizers", "spec.dns.providers[1].name", "spec.extensions[0].type", "spec.runtimeCluster.networking.services[0]")
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		var fields []string
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
		slices.Sort(fields)
		want := []string{"metadata.finalizers", "spec.dns.providers[1].name", "spec.extensions[0].type", "spec.runtimeCluster.networking.services[0]"}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	}

	step("a Garden gets its defaults, and applying it again changes nothing")
	apply := func() *operatorv1alpha1.Garden {
		data, err := json.Marshal(newGarden(t))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(data, u); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		if err := unstructured.SetNestedField(u.Object, "60m", "spec", "virtualCluster", "kubernetes", "kubeAPIServer", "eventTTL"); err != nil {
			t.Fatal(err)
		}
		if err := r.WithWatch.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("user"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		garden := newGarden(t)
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
			t.Fatal(err)
		}
		return garden
	}
	garden := apply()
	apiServer := garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer
	if apiServer == nil || apiServer.Requests == nil || apiServer.Requests.MaxMutatingInflight == nil || *apiServer.Requests.MaxMutatingInflight != 200 {
		t.Errorf("kubeAPIServer is %+v", apiServer)
	}
	if garden.Spec.VirtualCluster.Kubernetes.KubeControllerManager == nil {
		t.Error("kubeControllerManager is absent")
	}
	encryption := garden.Spec.VirtualCluster.Gardener.GardenerAPIServer.EncryptionConfig
	if encryption == nil || encryption.Provider.Type == nil || *encryption.Provider.Type != corev1beta1.EncryptionProviderTypeAESCBC {
		t.Errorf("encryptionConfig of gardenerAPIServer is %+v", encryption)
	}
	env.Await(t, r, newGarden(t), has[*operatorv1alpha1.Garden](constants.FinalizerReferenceProtection))
	before := apply()
	if after := apply(); after.Generation != before.Generation || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("generation changes from %d to %d", before.Generation, after.Generation)
	}

	step("there is only one Garden")
	refused(t, r.Create(t.Context(), newGarden(t, func(g *operatorv1alpha1.Garden) { g.Name = "second" })), apierrors.IsForbidden, `already the Garden "local"`)

	step("what it refers to has a finalizer, and loses it when neither the Garden nor a DNSRecord of it needs it any more")
	definitions, err := crds.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), r, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	env.AwaitServed[*extensionsv1alpha1.DNSRecord](t, r)
	record := &extensionsv1alpha1.DNSRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "former"},
		Spec: extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local", Class: new(extensionsv1alpha1.ExtensionClassGarden)},
			SecretRef:   corev1.SecretReference{Namespace: constants.GardenNamespace, Name: "dns"},
			Name:        "api.example.com", RecordType: extensionsv1alpha1.DNSRecordTypeA, Values: []string{"10.0.0.1"},
		},
	}
	if err := r.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dns", "backup"} {
		env.Await(t, r, env.Named[*corev1.Secret](constants.GardenNamespace, name), has[*corev1.Secret](constants.FinalizerReferenceProtection))
	}
	env.Edit(t, r, newGarden(t), func(g *operatorv1alpha1.Garden) { g.Spec.DNS.Providers[0].SecretRef.Name = "other" })
	env.Await(t, r, env.Named[*corev1.Secret](constants.GardenNamespace, "other"), has[*corev1.Secret](constants.FinalizerReferenceProtection))
	env.Await(t, r, env.Named[*corev1.Secret](constants.GardenNamespace, "dns"), has[*corev1.Secret](constants.FinalizerReferenceProtection))
	if err := r.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	env.Await(t, r, env.Named[*corev1.Secret](constants.GardenNamespace, "dns"), func(s *corev1.Secret) error {
		if len(s.Finalizers) > 0 {
			return fmt.Errorf("its finalizers are %v", s.Finalizers)
		}
		return nil
	})

	step("operations are possible in their phases only")
	operation := func(name string) error {
		garden := newGarden(t)
		return r.Patch(t.Context(), garden, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, constants.GardenerOperation, name)))
	}
	refused(t, operation(constants.OperationRotateCAComplete), apierrors.IsInvalid, "metadata.annotations[gardener.cloud/operation]", "Prepared")
	refused(t, operation("dance"), apierrors.IsInvalid, "metadata.annotations[gardener.cloud/operation]")
	if err := operation(constants.OperationRotateCAStart); err != nil {
		t.Error(err)
	}

	step("an audit policy has to be valid")
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "policy"}, Data: map[string]string{"policy": "kind: Nonsense"}}
	if err := r.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	err = r.Patch(t.Context(), newGarden(t), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"virtualCluster":{"kubernetes":{"kubeAPIServer":{"auditConfig":{"auditPolicy":{"configMapRef":{"name":"policy"}}}}}}}}`)))
	if err == nil || !strings.Contains(err.Error(), "spec.virtualCluster.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef.name") {
		t.Errorf("got error %v", err)
	}

	step("the namespace stays while there is a Garden")
	refused(t, r.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}), apierrors.IsForbidden, `Garden "local"`)

	step("a deletion needs a confirmation")
	refused(t, r.Delete(t.Context(), newGarden(t)), apierrors.IsForbidden, constants.ConfirmationDeletion)

	step("a Garden is not deleted while there are Seeds")
	r.createAccess(t)
	if err := r.Create(t.Context(), builder.CloudProfile("local")); err != nil {
		t.Fatal(err)
	}
	if err := r.Create(t.Context(), builder.Seed("s")); err != nil {
		t.Fatal(err)
	}
	if err := r.Patch(t.Context(), newGarden(t), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, constants.ConfirmationDeletion))); err != nil {
		t.Fatal(err)
	}
	refused(t, r.Delete(t.Context(), newGarden(t)), apierrors.IsForbidden, `still has Seed "s"`)

	step("references stay until the finalizer of the operator is removed")
	env.Edit(t, r, newGarden(t), func(g *operatorv1alpha1.Garden) { g.Finalizers = append(g.Finalizers, operatorv1alpha1.FinalizerName) })
	if err := r.Delete(t.Context(), builder.Seed("s")); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, r, builder.Seed("s"))
	if err := r.Delete(t.Context(), newGarden(t)); err != nil {
		t.Fatal(err)
	}
	backup := env.Named[*corev1.Secret](constants.GardenNamespace, "backup")
	if err := r.Delete(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	env.Await(t, r, env.Named[*corev1.Secret](constants.GardenNamespace, "backup"), has[*corev1.Secret](constants.FinalizerReferenceProtection))
	env.Edit(t, r, newGarden(t), func(g *operatorv1alpha1.Garden) {
		g.Finalizers = slices.DeleteFunc(g.Finalizers, func(f string) bool { return f == operatorv1alpha1.FinalizerName })
	})
	env.AwaitGone(t, r, newGarden(t))
	env.AwaitGone(t, r, backup)

	step("controllers run as soon as there are a Garden and its CustomResourceDefinitions, and start again with another Garden")
	r.comeAndGo(t)
}

// createAccess creates the Secret with the access to the virtual garden, as gardener-resource-manager fills it.
func (r *runtime) createAccess(t *testing.T) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "operator"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := r.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := r.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	if err := r.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: virtualcluster.SecretKey.Namespace, Name: virtualcluster.SecretKey.Name,
			Annotations: map[string]string{resourcesv1alpha1.ServiceAccountTokenRenewTimestamp: time.Now().Add(time.Hour).Format(time.RFC3339)},
		},
		Data: map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: env.Kubeconfig(t, env.WithToken(r.e.Config, token.Status.Token))},
	}); err != nil {
		t.Fatal(err)
	}
}

// comeAndGo creates and deletes Gardens, and waits until each is cared for.
func (r *runtime) comeAndGo(t *testing.T) {
	t.Helper()
	deploy := func(get func() ([]*apiextensionsv1.CustomResourceDefinition, error)) {
		definitions, err := get()
		if err != nil {
			t.Fatal(err)
		}
		if err := crds.Deploy(t.Context(), r, "test", definitions...); err != nil {
			t.Fatal(err)
		}
	}
	cared := func(g *operatorv1alpha1.Garden) error {
		got := map[corev1beta1.ConditionType]string{}
		for _, c := range g.Status.Conditions {
			got[c.Type] = c.Reason
		}
		// Whether they are deployed yet depends on how far the reconciliation is; nothing runs them here.
		if reason := got[operatorv1alpha1.RuntimeComponentsHealthy]; reason != "RuntimeComponentsRunning" && reason != "RuntimeComponentUnhealthy" {
			return fmt.Errorf("condition %s has reason %q", operatorv1alpha1.RuntimeComponentsHealthy, reason)
		}
		delete(got, operatorv1alpha1.RuntimeComponentsHealthy)
		if diff := cmp.Diff(map[corev1beta1.ConditionType]string{
			operatorv1alpha1.VirtualGardenAPIServerAvailable: "HealthzRequestSucceeded",
			operatorv1alpha1.VirtualComponentsHealthy:        "DeploymentMissing", operatorv1alpha1.ObservabilityComponentsHealthy: "ObservabilityComponentsRunning",
		}, got); diff != "" {
			return fmt.Errorf("conditions (-want +got):\n%s", diff)
		}
		return nil
	}
	confirmed := func(g *operatorv1alpha1.Garden) {
		g.Annotations = map[string]string{constants.ConfirmationDeletion: "true"}
	}
	for i := range 2 {
		if err := r.Create(t.Context(), newGarden(t, confirmed)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			for _, get := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){crds.Druid, crds.Extensions, crds.Resources, crds.VerticalPodAutoscaler} {
				deploy(get)
			}
		}
		env.Await(t, r, newGarden(t), cared)
		if err := r.Delete(t.Context(), newGarden(t)); err != nil {
			t.Fatal(err)
		}
		env.AwaitGone(t, r, newGarden(t))
	}
}
