package gardenlet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/chart/charttest"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/test/builder"
)

const someKubeconfig = `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
"clusters":[{"name":"a","cluster":{"server":"https://a.example"}}],"users":[{"name":"a","user":{"token":"t"}}]}`

func secretWith(namespace, name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"}, Data: map[string][]byte{key: []byte(value)}}
}

func exists(t *testing.T, c client.Client, object client.Object) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(object), &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

// A reference must not be a way to delete any Secret of the garden.
func TestDeleteKubeconfig(t *testing.T) {
	referring := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "s"}
	})
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		stays  bool
	}{
		"a kubeconfig":             {secret: secretWith("garden", "s", "kubeconfig", someKubeconfig)},
		"something else":           {secret: secretWith("garden", "s", "password", "x"), stays: true},
		"a key of the same name":   {secret: secretWith("garden", "s", "kubeconfig", "x"), stays: true},
		"a kubeconfig of a shoot":  {secret: secretWith("garden-dev", "s", "kubeconfig", someKubeconfig), stays: true},
		"a kubeconfig not to used": {secret: secretWith("garden", "s", "kubeconfig", strings.Replace(someKubeconfig, "a.example", "127.0.0.1", 1)), stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.secret).Build()
			r := &reconciler{Values: Values{Blocked: destination.Host}, virtualCache: c, virtualAPI: c}
			if err := r.deleteKubeconfig(t.Context(), referring); err != nil {
				t.Fatal(err)
			}
			if got := exists(t, c, tc.secret); got != tc.stays {
				t.Errorf("the Secret exists: %t, want %t", got, tc.stays)
			}
		})
	}
}

// A pass that ends before it has deleted the bootstrap token is made up for by the next one: the condition does not say before that the end is reached.
func TestFinishAfterInterruption(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	object := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Status.Conditions = []corev1beta1.Condition{waiting("a")}
	})
	token := secretWith("kube-system", graph.BootstrapTokenName("garden", "a"), bootstraptoken.DescriptionKey, bootstraptoken.ForSeed("a"))
	interrupted := errors.New("interrupted")
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, token, builder.Seed("a")).WithStatusSubresource(object).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if interrupted != nil {
				return interrupted
			}
			return c.Delete(ctx, obj, opts...)
		},
	})
	r := &reconciler{
		Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, virtualCache: c, virtualAPI: c, runtimeCache: c, runtimeAPI: c,
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, interrupted) {
		t.Fatalf("the first pass returns %v", err)
	}
	interrupted = nil
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if exists(t, c, token) {
		t.Error("the bootstrap token still exists")
	}
	if err := c.Get(t.Context(), request.NamespacedName, object); err != nil || object.Status.Conditions[0].Status != corev1beta1.ConditionTrue {
		t.Errorf("the conditions are %+v (%v)", object.Status.Conditions, err)
	}
}

// Finishing removes what requested the deployment, and not what was requested since.
func TestFinishAfterAnotherRequest(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		condition corev1beta1.Condition
		request   bool
	}{
		"nothing was requested":                    {condition: waiting("a")},
		"a kubeconfig was given":                   {condition: waiting("a"), request: true},
		"a kubeconfig was given, no new condition": {condition: registered("a"), request: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Annotations = map[string]string{constants.GardenerOperation: constants.OperationForceRedeploy}
				g.Status.Conditions = []corev1beta1.Condition{tc.condition}
			})
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object).Build()
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if tc.request {
				changed := object.DeepCopy()
				changed.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "s"}
				if err := c.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, virtualCache: c, virtualAPI: c}
			if err := r.finish(t.Context(), object, false); apierrors.IsConflict(err) != tc.request || !tc.request && err != nil {
				t.Errorf("finish() returned %v", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if got := object.Annotations[constants.GardenerOperation] != "" && object.Spec.KubeconfigSecretRef != nil; got != tc.request {
				t.Errorf("the Gardenlet requests %v, %v", object.Annotations, object.Spec.KubeconfigSecretRef)
			}
		})
	}
}

// Answers of servers that a Gardenlet names are not for those who may read Gardenlets.
func TestFailed(t *testing.T) {
	answer := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("instance credentials"))
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"of the operator":        {errors.New("spec.config.seedConfig has to be set"), "spec.config.seedConfig has to be set"},
		"of the runtime cluster": {(&target{runtime: true}).foreign(errors.New("plain")), "plain"},
		"of another cluster":     {(&target{}).foreign(answer), "requests to the cluster of spec.kubeconfigSecretRef fail: the log of gardener-operator has the error"},
		"of a registry":          {&foreignError{"the chart cannot be pulled", answer}, "the chart cannot be pulled: the log of gardener-operator has the error"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failed(tc.err).Message; got != tc.want {
				t.Errorf("the message is %q, want %q", got, tc.want)
			}
		})
	}
	if err := (&target{}).foreign(answer); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "instance credentials") {
		t.Errorf("the error for the log is %v", err)
	}
	if err := (&target{}).foreign(nil); err != nil {
		t.Errorf("no error has become %v", err)
	}
}

// What is corrected elsewhere than in the Gardenlet triggers no pass, so that only a retry notices it.
func TestRetries(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
	garden.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(garden, secretWith("garden", "s", "password", "x")).Build()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major":"1","minor":"36","gitVersion":"v1.36.1"}`))
	}))
	t.Cleanup(server.Close)
	r := &reconciler{
		Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, virtualCache: c, virtualAPI: c, runtimeCache: c, runtimeAPI: c,
		runtimeConfig: &rest.Config{Host: server.URL}, charts: &chart.Puller{},
	}
	broken := charttest.Push(t, charttest.Pack(t, "Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n", "templates/a.yaml", `{{ fail "broken" }}`))
	for name, tc := range map[string]struct {
		run  func() error
		want string
	}{
		"the Secret with the kubeconfig": {func() error {
			_, err := r.target(t.Context(), builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "s"}
			}))
			return err
		}, "spec.kubeconfigSecretRef"},
		"the Secret for the credentials": {func() error {
			ref := corev1.SecretReference{Namespace: "garden", Name: "s"}
			_, err := r.bootstrap(t.Context(), &target{api: c}, builder.Gardenlet("a"), release.Connection{Bootstrap: ref, Kubeconfig: ref})
			return err
		}, "is not replaced"},
		"the chart of a tag": {func() error {
			_, err := r.deploy(t.Context(), builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.Deployment.Helm.OCIRepository.Ref = &broken
			}))
			return err
		}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.run(); err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("the error is %v, want one with %q that is retried", err, tc.want)
			}
		})
	}
}
