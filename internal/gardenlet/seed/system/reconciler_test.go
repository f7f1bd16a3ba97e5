package system

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/test/builder"
)

// Token requestors renew a token at once if the annotation with the time of the next renewal is missing. The gardenlet renews its own kubeconfig if the
// annotation of its Secret requests it.
func TestCredentialsAreRenewed(t *testing.T) {
	const garden, identity = "serviceaccount.resources.gardener.cloud/token-renew-timestamp", "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	secret := func(name string, labels map[string]string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "extension-x", Name: name, Labels: labels, Annotations: map[string]string{garden: "later", identity: "later"}},
			Data:       map[string][]byte{"token": []byte("t")},
		}
	}
	untouched := map[string]string{garden: "later", identity: "later"}
	for operation, want := range map[string]map[string]map[string]string{
		"renew-garden-access-secrets":    {"garden": {identity: "later"}, "shoot": untouched, "identity": untouched, "kubeconfig": untouched},
		"renew-workload-identity-tokens": {"garden": untouched, "shoot": untouched, "identity": {garden: "later"}, "kubeconfig": untouched},
		"renew-kubeconfig": {
			"garden": untouched, "shoot": untouched, "identity": untouched,
			"kubeconfig": {garden: "later", identity: "later", "gardener.cloud/operation": "renew"},
		},
		"reconcile": {"garden": untouched, "shoot": untouched, "identity": untouched, "kubeconfig": untouched},
	} {
		t.Run(operation, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"gardener.cloud/operation": operation}}}
			gardenCache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).Build()
			seedAPI := fake.NewClientBuilder().WithObjects(
				secret("garden", map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden"}),
				secret("shoot", map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}),
				secret("identity", map[string]string{"security.gardener.cloud/purpose": "workload-identity-token-requestor"}),
				secret("kubeconfig", nil),
			).Build()
			r := &reconciler{gardenCache: gardenCache}
			r.SeedAPI, r.KubeconfigSecret = seedAPI, &corev1.SecretReference{Namespace: "extension-x", Name: "kubeconfig"}
			if err := r.operate(t.Context(), seed, operation); err != nil {
				t.Fatal(err)
			}
			secrets, got := &corev1.SecretList{}, map[string]map[string]string{}
			if err := seedAPI.List(t.Context(), secrets); err != nil {
				t.Fatal(err)
			}
			for i := range secrets.Items {
				got[secrets.Items[i].Name] = secrets.Items[i].Annotations
				if string(secrets.Items[i].Data["token"]) != "t" {
					t.Errorf("the token in %q has changed", secrets.Items[i].Name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if err := gardenCache.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
				t.Fatal(err)
			}
			if seed.Annotations["gardener.cloud/operation"] != "" {
				t.Error("the Seed keeps the annotation after the operation")
			}
		})
	}
}

// What fails before a flow begins is reported as errors of the flow are: the Seed would keep the last success otherwise.
func TestErrorsBeforeTheFlowAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Seed)
		// refused is the kind of lists that fail.
		refused, want string
		operation     corev1beta1.LastOperationType
	}{
		"Extensions":              {func(*corev1beta1.Seed) {}, "ExtensionList", "list Extensions: refused", corev1beta1.LastOperationTypeReconcile},
		"Gardens":                 {func(*corev1beta1.Seed) {}, "GardenList", "list Gardens in the seed: refused", corev1beta1.LastOperationTypeReconcile},
		"Shoots, in deletion":     {deleting, "ShootList", "list shoots: refused", corev1beta1.LastOperationTypeDelete},
		"Extensions, in deletion": {deleting, "ExtensionList", "list Extensions: refused", corev1beta1.LastOperationTypeDelete},
		"ControllerInstallations, in deletion": {
			deleting, "ControllerInstallationList", "list ControllerInstallations: refused", corev1beta1.LastOperationTypeDelete,
		},
		"Gardens, in deletion": {deleting, "GardenList", "list Gardens in the seed: refused", corev1beta1.LastOperationTypeDelete},
	} {
		t.Run(name, func(t *testing.T) {
			r, seed := reconcilerOf(t, tc.change, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if gvk, err := c.GroupVersionKindFor(list); err != nil || gvk.Kind == tc.refused {
						return errors.Join(errors.New("refused"), err)
					}
					return c.List(ctx, list, options...)
				},
			})
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seed)}); err == nil {
				t.Error("the Seed is not retried")
			}
			if err := r.gardenCache.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
				t.Fatal(err)
			}
			want := &corev1beta1.LastOperation{Type: tc.operation, State: corev1beta1.LastOperationStateError, Description: tc.want}
			if diff := cmp.Diff(want, seed.Status.LastOperation, cmpopts.IgnoreFields(corev1beta1.LastOperation{}, "Progress", "LastUpdateTime")); diff != "" {
				t.Errorf("lastOperation (-want +got):\n%s", diff)
			}
		})
	}
}

// Components of a seed need its version of Kubernetes, and the Seed says so if they cannot run.
func TestVersionOfSeed(t *testing.T) {
	for version, want := range map[string]string{
		"v1.31.14":            "the seed has Kubernetes v1.31.14, and needs 1.32 at least: update it",
		"v1.9.0":              "the seed has Kubernetes v1.9.0, and needs 1.32 at least: update it",
		"unknown":             `version of the seed: could not parse "unknown" as version`,
		"v1.32.0-gke.1002000": "", "v1.36.3+k3s1": "", "v2.0.0": "",
	} {
		t.Run(version, func(t *testing.T) {
			r, seed := reconcilerOf(t, func(*corev1beta1.Seed) {}, interceptor.Funcs{})
			r.SeedVersion = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &apimachineryversion.Info{GitVersion: version}}
			if want == "" {
				if got, err := r.observe(t.Context(), seed); err != nil || got.version != version {
					t.Errorf("observe() = %+v, %v", got, err)
				}
				return
			}
			err := stagetest.UntilIdle(t, func(ctx context.Context) error { // the flow would wait for what does not run here
				_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seed)})
				return err
			})
			if err == nil {
				t.Error("the Seed is not retried")
			}
			if err := r.gardenCache.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
				t.Fatal(err)
			}
			if last := seed.Status.LastOperation; last.State != corev1beta1.LastOperationStateError || last.Description != want {
				t.Errorf("lastOperation is %+v, want %q", last, want)
			}
			if err := r.SeedAPI.Get(t.Context(), client.ObjectKey{Name: "garden"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
				t.Errorf("the flow has run: %v", err)
			}
		})
	}
}

func deleting(seed *corev1beta1.Seed) { seed.DeletionTimestamp = new(metav1.Now()) }

// reconcilerOf returns a reconciler with fake clusters, and its Seed, which was reconciled before.
func reconcilerOf(t *testing.T, change func(*corev1beta1.Seed), funcs interceptor.Funcs) (*reconciler, *corev1beta1.Seed) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	seed := builder.Seed("s", change)
	seed.Finalizers = []string{"gardener"}
	seed.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100}
	garden := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).WithStatusSubresource(seed).Build(), funcs)
	r := &reconciler{gardenCache: garden}
	r.GardenAPI, r.SeedAPI = garden, interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), funcs)
	r.Clock = clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	return r, seed
}
