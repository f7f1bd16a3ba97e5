package resourcemanager

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/gateway"
	component "gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// testCluster is source and target of the controllers of a resource manager. It has no nodes that run pods.
type testCluster struct{ client.WithWatch }

func TestControllers(t *testing.T) {
	w := start(t)
	t.Run("health follows the objects of a ManagedResource", w.health)
	t.Run("a token can be used", w.token)
	t.Run("a static token that is not used is invalidated", w.staticToken)
	t.Run("network policies follow a Service", w.networkPolicies)
	t.Run("the API server calls the webhooks", w.webhooks)
	t.Run("pods of a control plane are sent to the gateway, and may connect to it", w.loadBalancing)
	t.Run("the taint of a new node is removed, and it gets its delay", w.node)
	t.Run("so is one that it gets later, after an update in place", w.taintAgain)
	t.Run("the taint of a node is removed when its last critical pod is ready", w.criticalPod)
	t.Run("a certificate for a user that is not a node is denied", w.certificate)
}

func start(t *testing.T) *testCluster {
	t.Helper()
	e := env.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Resources()
	if err != nil {
		t.Fatal(err)
	}
	autoscaler, err := crds.VerticalPodAutoscaler()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", append(definitions, autoscaler...)...); err != nil {
		t.Fatal(err)
	}
	env.AwaitServed[*resourcesv1alpha1.ManagedResource](t, c)
	settings := &config{Webhooks: component.ForSeed().Webhooks}
	settings.Webhooks.EndpointSliceHints.Enabled, settings.Webhooks.VPAInPlaceUpdates.Enabled = true, true
	settings.Webhooks.PodKubeAPIServerLoadBalancing.Enabled = true
	settings.Webhooks.TokenInvalidator.Enabled, settings.Controllers.TokenInvalidator.Enabled = true, true
	scope := component.Scope{}
	settings.Server.Webhooks.BindAddress = "127.0.0.1"
	settings.Server.Webhooks.Port, settings.Server.Webhooks.TLS.ServerCertDir, scope.CABundle = serverCertificate(t)
	scope.URL = fmt.Sprintf("https://127.0.0.1:%d", settings.Server.Webhooks.Port)
	settings.Controllers.CSRApprover.Enabled = true
	settings.Controllers.NodeCriticalComponents.Enabled = true
	settings.Controllers.NodeCriticalComponents.Backoff = &metav1.Duration{Duration: time.Hour} // The test relies on events of DaemonSets.
	settings.Controllers.NodeAgentReconciliationDelay.Enabled = true
	settings.Controllers.TokenRequestor.Enabled = true
	settings.Controllers.NetworkPolicy.Enabled = true
	settings.Controllers.GarbageCollector.Enabled = true
	resourcemanagerconfigv1alpha1.SetDefaults(settings)
	options := manager.Options{Scheme: scheme, Logger: process.NewLogger(t.Output(), "debug", "text"), Metrics: metricsserver.Options{BindAddress: "0"}}
	Component().Options(settings, &options)
	mgr, err := manager.New(e.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := addControllers(t.Context(), mgr, mgr, "", settings); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for _, object := range component.Webhooks(settings, scope) {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return &testCluster{c}
}

// serverCertificate makes a certificate for a server on a free port of this machine.
func serverCertificate(t *testing.T) (port int, dir string, ca []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ports.Free(t, 1)[0], dir, certificate
}

func (w *testCluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// staticToken plays kube-controller-manager, which writes tokens.
func (w *testCluster) staticToken(t *testing.T) {
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "static"}, AutomountServiceAccountToken: new(false),
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "static-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name},
		},
		Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("valid")},
	}
	w.create(t, account, secret)
	has := func(want string) {
		t.Helper()
		env.Await(t, w, env.Named[*corev1.Secret](secret.Namespace, secret.Name), func(s *corev1.Secret) error {
			if got := string(s.Data["token"]); got != want {
				return fmt.Errorf("the token has %d characters", len(got))
			}
			return nil
		})
	}
	const invalid = "\x00\x00\x00"
	has(invalid)
	// The webhook does not even let another token in.
	env.Edit(t, w, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("valid") })
	if got := string(secret.Data["token"]); got != invalid {
		t.Errorf("a token with %d characters is stored", len(got))
	}
	env.Edit(t, w, account, func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = new(true) })
	has("") // kube-controller-manager would issue one
}

// awaitCondition waits for a status and a text in the message of a condition of the ManagedResource in a namespace.
func (w *testCluster) awaitCondition(t *testing.T, namespace string, typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus, text string) {
	t.Helper()
	env.AwaitList(t, w, func(list []*resourcesv1alpha1.ManagedResource) error {
		condition := kube.Condition(list[0].Status.Conditions, typ)
		if condition == nil || condition.Status != status || !strings.Contains(condition.Message, text) {
			return fmt.Errorf("conditions are %+v", list[0].Status.Conditions)
		}
		return nil
	}, client.InNamespace(namespace))
}

const healthManifests = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: health}
---
apiVersion: v1
kind: Service
metadata: {name: skipped, namespace: health, annotations: {resources.gardener.cloud/skip-health-check: "true"}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: health}
spec:
  replicas: 1
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: c, image: i}]}
`

func (w *testCluster) health(t *testing.T) {
	const healthy, progressing = resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing
	w.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "health"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "health", Name: "manifests"}, StringData: map[string]string{"objects.yaml": healthManifests}},
		&resourcesv1alpha1.ManagedResource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "health", Name: "mr"},
			Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "manifests"}}},
		})
	w.awaitCondition(t, "health", healthy, "False", `Deployment "health/d" is unhealthy: its last change has not been observed by its controller`)
	w.awaitCondition(t, "health", progressing, "True", `Deployment "health/d" is progressing`)

	// The rollout is complete, but for a pod of the revision before.
	d := &appsv1.Deployment{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "health", Name: "d"}, d); err != nil {
		t.Fatal(err)
	}
	d.Annotations["deployment.kubernetes.io/revision"] = "2"
	if err := w.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.create(t,
		&appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "health", Name: "d-new", Labels: map[string]string{"app": "x", "pod-template-hash": "new"},
				Annotations:     map[string]string{"deployment.kubernetes.io/revision": "2"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
		}, pod("new"), pod("old"))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	if err := w.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, "health", healthy, "True", "All resources are healthy.")
	w.awaitCondition(t, "health", progressing, "True", "1 old pods are not gone")
	if err := w.Delete(t.Context(), pod("old"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, "health", progressing, "False", "All resources have been fully rolled out.")

	// It fails later: that is no rollout.
	d.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := w.Status().Patch(t.Context(), d, client.Merge); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, "health", healthy, "False", "it lacks minimum availability")
	w.awaitCondition(t, "health", progressing, "False", "All resources have been fully rolled out.")
	// A new manifest starts over.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "health", Name: "manifests"}}
	changed := strings.Replace(healthManifests, "image: i", "image: j", 1)
	if err := w.Patch(t.Context(), secret, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"objects.yaml":%q}}`, changed))); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, "health", progressing, "True", "its last change has not been observed by its controller")
}

func pod(hash string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "health", Name: "d-" + hash, Labels: map[string]string{"app": "x", "pod-template-hash": hash}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: new(int64(0))},
	}
}

func (w *testCluster) token(t *testing.T) {
	w.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "token"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "token", Name: "access",
			Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
			Annotations: map[string]string{
				"serviceaccount.resources.gardener.cloud/name": "sa", "serviceaccount.resources.gardener.cloud/namespace": "token",
				"serviceaccount.resources.gardener.cloud/inject-ca-bundle": "true",
			},
		}})
	env.Await(t, w, env.Named[*corev1.Secret]("token", "access"), func(secret *corev1.Secret) error {
		if strings.Count(string(secret.Data["token"]), ".") != 2 || !strings.Contains(string(secret.Data["bundle.crt"]), "BEGIN CERTIFICATE") {
			return fmt.Errorf("the Secret has %d keys", len(secret.Data))
		}
		return nil
	})
}

func (w *testCluster) networkPolicies(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "s", Annotations: map[string]string{
			"networking.resources.gardener.cloud/namespace-selectors": `[{"matchLabels":{"kubernetes.io/metadata.name":"net-b"}}]`,
		}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	names := func(want ...string) func([]*networkingv1.NetworkPolicy) error {
		return func(list []*networkingv1.NetworkPolicy) error {
			var have []string
			for _, policy := range list {
				have = append(have, policy.Name)
			}
			if len(have) != len(want) {
				return fmt.Errorf("policies are %q, want %q", have, want)
			}
			return nil
		}
	}
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "net"}}, service)
	env.AwaitList(t, w, names("egress-to-s-tcp-80", "ingress-to-s-tcp-80"), client.InNamespace("net"))
	// A namespace appears that the Service is to be reached from.
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "net-b"}})
	env.AwaitList(t, w, names("egress-to-s-tcp-80", "ingress-to-s-tcp-80", "ingress-to-s-tcp-80-from-net-b"), client.InNamespace("net"))
	env.AwaitList(t, w, names("egress-to-net-s-tcp-80"), client.InNamespace("net-b"))
	// A deleted policy is recreated.
	if err := w.DeleteAllOf(t.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace("net-b")); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, w, names("egress-to-net-s-tcp-80"), client.InNamespace("net-b"))
	if err := w.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, w, names(), client.InNamespace("net"))
	env.AwaitList(t, w, names(), client.InNamespace("net-b"))
}

func (w *testCluster) webhooks(t *testing.T) {
	w.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:        "hooks",
			Labels:      map[string]string{"gardener.cloud/role": "test", "high-availability-config.resources.gardener.cloud/consider": "true"},
			Annotations: map[string]string{"high-availability-config.resources.gardener.cloud/zones": "a,b"},
		}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "own"}, AutomountServiceAccountToken: new(false)})
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "p", Labels: map[string]string{"pod-template-hash": "x"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: "own", Containers: []corev1.Container{{Name: "c", Image: "i"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			}},
		},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "d", Labels: map[string]string{"high-availability-config.resources.gardener.cloud/type": "server"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	env.AwaitRequest(t, func(ctx context.Context) error {
		p := p.DeepCopy()
		if err := w.Create(ctx, p, client.DryRunAll); err != nil {
			return err
		}
		if len(p.Spec.Volumes) == 0 || p.Spec.SecurityContext == nil {
			return errors.New("no webhook is called for pods")
		}
		return nil
	})
	w.create(t, p, d)
	if p.Spec.Volumes[0].Name != "kube-api-access-gardener" || p.Spec.SecurityContext.SeccompProfile == nil ||
		p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["pod-template-hash"] != "x" {
		t.Errorf("the pod is admitted as %+v", p.Spec)
	}
	if *d.Spec.Replicas != 2 || len(d.Spec.Template.Spec.TopologySpreadConstraints) != 2 {
		t.Errorf("the Deployment is admitted as %+v", d.Spec)
	}
	w.fewerZones(t, d)
	autoscaler := &unstructured.Unstructured{}
	autoscaler.SetGroupVersionKind(workload.AutoscalerKind)
	autoscaler.SetNamespace("hooks")
	autoscaler.SetName("d")
	autoscaler.Object["spec"] = map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
	w.create(t, autoscaler)
	if mode, _, err := unstructured.NestedString(autoscaler.Object, "spec", "updatePolicy", "updateMode"); err != nil || mode != string(workload.InPlaceOrRecreate) {
		t.Errorf("the VerticalPodAutoscaler is admitted as %v", autoscaler.Object)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "managedresources.resources.gardener.cloud"}}
	protect := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"gardener.cloud/deletion-protected":"true"}}}`))
	if err := w.Patch(t.Context(), definition, protect); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), definition); !apierrors.IsForbidden(err) {
		t.Errorf("the definition can be deleted: %v", err)
	}
	if err := w.DeleteAllOf(t.Context(), &apiextensionsv1.CustomResourceDefinition{}, client.MatchingLabels{"gardener.cloud/deletion-protected": "true"}); !apierrors.IsForbidden(err) {
		t.Errorf("all definitions can be deleted at once: %v", err)
	}
}

// fewerZones removes one of the two zones of the namespace of a Deployment. Nothing else changes.
func (w *testCluster) fewerZones(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	if err := w.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"resources.gardener.cloud/managed-by":"gardener"}}}`))); err != nil {
		t.Fatal(err)
	}
	zones := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"high-availability-config.resources.gardener.cloud/zones":"a"}}}`))
	if err := w.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace}}, zones); err != nil {
		t.Fatal(err)
	}
	env.Await(t, w, env.Named[*appsv1.Deployment](d.Namespace, d.Name), func(d *appsv1.Deployment) error {
		if constraints := d.Spec.Template.Spec.TopologySpreadConstraints; len(constraints) != 1 {
			return fmt.Errorf("the constraints are %v", constraints)
		}
		return nil
	})
}

// loadBalancing runs after webhooks, which has waited until the API server calls them.
func (w *testCluster) loadBalancing(t *testing.T) {
	namespace := func(name, role string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"gardener.cloud/role": role}}}
	}
	w.create(t, namespace(gateway.Namespace, "istio-ingress"), namespace("shoot--dev--a", "shoot"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "own"}},
		gateway.LoadBalancing{Namespace: gateway.Namespace, Hosts: []string{"kube-apiserver.shoot--dev--a.svc"}}.ConfigMap("shoot--dev--a"))
	var internal *corev1.Service
	for _, object := range gateway.Objects(gateway.Values{TerminateTLS: true}) {
		if service, ok := object.(*corev1.Service); ok && service.Name == gateway.InternalService {
			internal = service
		}
	}
	w.create(t, internal)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "p"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "own", Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{shootaccess.Volume("generic-token-kubeconfig-1234", "c")},
		},
	}
	w.create(t, pod)
	want := []corev1.HostAlias{{IP: internal.Spec.ClusterIP, Hostnames: []string{"kube-apiserver.shoot--dev--a.svc"}}}
	if diff := cmp.Diff(want, pod.Spec.HostAliases); diff != "" {
		t.Errorf("host aliases (-want +got):\n%s", diff)
	}
	name := "egress-to-gateway-istio-ingressgateway-internal-tcp-8443-via-istio-ingressgateway-internal-tcp-9443"
	env.Await(t, w, env.Named[*networkingv1.NetworkPolicy]("shoot--dev--a", name), func(policy *networkingv1.NetworkPolicy) error {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			return err
		}
		if selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
			return fmt.Errorf("it selects %s, and the pod has %v", selector, pod.Labels)
		}
		return nil
	})
}

func (w *testCluster) node(t *testing.T) {
	w.create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	})
	env.Await(t, w, env.Named[*corev1.Node]("", "n1"), func(node *corev1.Node) error {
		for _, taint := range node.Spec.Taints {
			if taint.Key == "node.gardener.cloud/critical-components-not-ready" {
				return fmt.Errorf("taints are %v", node.Spec.Taints)
			}
		}
		if node.Annotations["node-agent.gardener.cloud/reconciliation-delay"] != "0s" {
			return fmt.Errorf("annotations are %v", node.Annotations)
		}
		return nil
	})
}

// The machine-controller-manager adds the taint to Nodes that were updated in place.
func (w *testCluster) taintAgain(t *testing.T) {
	const key = "node.gardener.cloud/critical-components-not-ready"
	env.Edit(t, w, env.Named[*corev1.Node]("", "n1"), func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	})
	env.Await(t, w, env.Named[*corev1.Node]("", "n1"), func(node *corev1.Node) error {
		if slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key }) {
			return fmt.Errorf("taints are %v", node.Spec.Taints)
		}
		return nil
	})
}

func (w *testCluster) criticalPod(t *testing.T) {
	critical := map[string]string{"node.gardener.cloud/critical-component": "true"}
	labels := map[string]string{"app": "critical", "node.gardener.cloud/critical-component": "true"}
	spec := corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "c", Image: "i"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "critical", Labels: critical},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
	w.create(t, set, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n2"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "critical", Labels: critical,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
	}, Spec: *spec.DeepCopy()}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = "n2", "default", new(false)
	w.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}, pod)
	// Another controller writes the delay: by then, the first check of the Node is over, or comes after the creation of the pod.
	env.Await(t, w, env.Named[*corev1.Node]("", "n2"), func(node *corev1.Node) error {
		if node.Annotations["node-agent.gardener.cloud/reconciliation-delay"] == "" {
			return errors.New("there is no delay yet")
		}
		return nil
	})
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	set.Status = appsv1.DaemonSetStatus{NumberReady: 1, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1}
	for _, object := range []client.Object{pod, set} {
		if err := w.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	env.Await(t, w, env.Named[*corev1.Node]("", "n2"), func(node *corev1.Node) error {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "node.gardener.cloud/critical-components-not-ready" }) {
			return fmt.Errorf("taints are %v", node.Spec.Taints)
		}
		return nil
	})
}

func (w *testCluster) certificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}, DNSNames: []string{"n1"},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	w.create(t, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	})
	env.Await(t, w, env.Named[*certificatesv1.CertificateSigningRequest]("", "csr"), func(csr *certificatesv1.CertificateSigningRequest) error {
		conditions := csr.Status.Conditions
		if len(conditions) != 1 || conditions[0].Type != certificatesv1.CertificateDenied || !strings.Contains(conditions[0].Message, `user "admin" is not a node`) {
			return fmt.Errorf("conditions are %+v", conditions)
		}
		return nil
	})
}
